// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/worker_team.hpp>

#include <atomic>
#include <string>
#include <system_error>
#include <utility>

#include <caf/actor_system.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>

#include <troupe/actors/network/shared_multiplexer.hpp>
#include <troupe/actors/node.hpp>
#include <troupe/actors/passes/cpu_worker.hpp>
#include <troupe/messages/errors.hpp>

namespace troupe {

struct worker_team::members {
  caf::actor_system& system;
  std::vector<passes::cpu_worker_actor> workers;
  std::vector<network::own_actors::hold> guards{};  // other nodes send the workers nothing
  std::atomic<std::size_t> next{0};

  ~members() {
    caf::scoped_actor self{system};
    for (const auto& each : workers) self->send_exit(each, caf::exit_reason::user_shutdown);
    self->wait_for(workers);
  }
};

worker_team::worker_team(node& here, std::size_t count) : worker_team(here.system(), count) {}

worker_team::worker_team(caf::actor_system& system, std::size_t count)
    : cpu_workers(count), members_(new members{.system = system, .workers = {}}) {
  if (count == 0)
    throw error(errc::misuse,
                "a worker_team needs at least one worker; leave pass_options::workers empty to run a pass serially");
  try {
    for (std::size_t i = 0; i < count; ++i) {
      const auto& worker = members_->workers.emplace_back(passes::spawn_cpu_worker(system));
      members_->guards.push_back(network::guard(system, worker.id(), network::own_actors::kind::inner));
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
  auto turn = members_->next.fetch_add(1, std::memory_order_relaxed) % members_->workers.size();
  caf::anon_send(members_->workers[turn], std::make_shared<std::function<void()>>(std::move(work)));
}

}  // namespace troupe
