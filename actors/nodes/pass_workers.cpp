// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/nodes/pass_workers.hpp>

#include <optional>

#include <troupe/actors/services/burst_threads.hpp>
#include <troupe/actors/services/node_actors.hpp>
#include <troupe/actors/services/running_work.hpp>

namespace troupe::nodes {

pass_workers::pass_workers(used_services here, std::size_t count)
    : cpu_workers(count),
      here_(here),
      threads_(*here.actors.system, count, std::nullopt, [here](const std::function<void()>& work) {
        const services::own_thread own(here.running, "a large function of a backward pass");
        const services::burst_threads::waiting_observer tells(here.bursts);
        work();
      }) {
  measure_grain();
  here_.pass_workers = this;
}

pass_workers::~pass_workers() { here_.pass_workers = nullptr; }

}  // namespace troupe::nodes
