// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/worker_team.hpp>

#include <utility>

#include <troupe/actors/node.hpp>
#include <troupe/actors/passes/lane_threads.hpp>
#include <troupe/actors/settings.hpp>
#include <troupe/messages/errors.hpp>

namespace troupe {

namespace {

std::size_t checked(std::size_t count) {
  if (count == 0)
    throw error(errc::misuse,
                "a worker_team needs at least one worker; leave pass_options::workers empty to run a pass serially");
  return count;
}

}  // namespace

worker_team::worker_team(node& here, std::size_t count) : worker_team(here.system(), count) {}

worker_team::worker_team(caf::actor_system& system, std::size_t count)
    : cpu_workers(checked(count)),
      threads_(std::make_unique<passes::lane_threads>(system, count, stop_limit_of_environment())) {
  measure_grain();
}

worker_team::~worker_team() = default;

void worker_team::post(std::function<void()> work) { threads_->post(std::move(work)); }

void worker_team::call_worker(engine::serve_lane what) { threads_->call_worker(std::move(what)); }

engine::lane* worker_team::lane_of(c10::Device device) noexcept { return threads_->lane_of(device); }

}  // namespace troupe
