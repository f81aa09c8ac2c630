// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/worker_team.hpp>

#include <atomic>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <caf/actor_system.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>

#include <troupe/actors/network/shared_multiplexer.hpp>
#include <troupe/actors/node.hpp>
#include <troupe/actors/passes/lane_worker.hpp>
#include <troupe/devices/present_devices.hpp>
#include <troupe/messages/errors.hpp>

namespace troupe {

using passes::lane_worker_actor;

namespace {

void send(const lane_worker_actor& worker, std::function<void()> work) {
  caf::anon_send(worker, std::make_shared<std::function<void()>>(std::move(work)));
}

}  // namespace

struct worker_team::members {
  explicit members(caf::actor_system& system) : system(system) {}

  ~members() {
    caf::scoped_actor self{system};
    for (const auto& each : workers) self->send_exit(each, caf::exit_reason::user_shutdown);
    self->wait_for(workers);
  }

  const lane_worker_actor& add(lane_worker_actor worker) {
    guards.push_back(network::guard(system, worker.id(), network::own_actors::kind::inner));
    return workers.emplace_back(std::move(worker));
  }

  caf::actor_system& system;
  std::vector<lane_worker_actor> workers;            // those of the CPU come first
  std::vector<network::own_actors::hold> guards;     // other nodes send the workers nothing
  std::optional<c10::DeviceType> type;               // of the accelerators
  std::vector<std::shared_ptr<engine::lane>> lanes;  // by accelerator
  std::atomic<std::size_t> next{0};
};

worker_team::worker_team(node& here, std::size_t count) : worker_team(here.system(), count) {}

worker_team::worker_team(caf::actor_system& system, std::size_t count)
    : cpu_workers(count), members_(std::make_unique<members>(system)) {
  if (count == 0)
    throw error(errc::misuse,
                "a worker_team needs at least one worker; leave pass_options::workers empty to run a pass serially");
  members_->type = devices::accelerator_type();
  try {
    for (std::size_t i = 0; i < count; ++i) members_->add(passes::spawn_cpu_worker(system));
    for (c10::DeviceIndex i = 0; members_->type && i < devices::accelerator_count(); ++i) {
      const auto& worker = members_->add(passes::spawn_device_worker(system, {*members_->type, i}));
      members_->lanes.push_back(std::make_shared<engine::lane>(
        engine::lane::kind::accelerator, 1, [worker](std::function<void()> work) { send(worker, std::move(work)); }));
    }
  } catch (const std::system_error& refused) {
    throw error(errc::function_failed, "a worker_team of " + std::to_string(count) + " workers got threads for " +
                                         std::to_string(members_->workers.size()) + " (" + refused.code().message() +
                                         "); ask for fewer, or raise the limit on the process's threads or memory");
  }
  measure_grain();
}

worker_team::~worker_team() = default;

void worker_team::post(std::function<void()> work) {
  const auto turn = members_->next.fetch_add(1, std::memory_order_relaxed) % count();
  send(members_->workers[turn], std::move(work));
}

engine::lane* worker_team::lane_of(c10::Device device) noexcept {
  const auto index = static_cast<std::size_t>(device.index());
  return members_->type == device.type() && index < members_->lanes.size() ? members_->lanes[index].get() : nullptr;
}

}  // namespace troupe
