// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/passes/cpu_worker.hpp>

#include <utility>

#include <caf/actor_cast.hpp>

#include <troupe/actors/support/thread_actor.hpp>

namespace troupe::passes {

cpu_worker_actor spawn_cpu_worker(caf::actor_system& system) {
  auto run = [](cpu_work_ptr& work, const caf::actor&) { (*std::exchange(work, nullptr))(); };
  return caf::actor_cast<cpu_worker_actor>(support::spawn_with_thread<cpu_work_ptr>(system, "troupe.worker", run));
}

}  // namespace troupe::passes
