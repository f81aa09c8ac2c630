// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/passes/cpu_continuation.hpp>

#include <tuple>

#include <ATen/core/grad_mode.h>
#include <caf/actor_cast.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <troupe/actors/passes/burst_runner.hpp>
#include <troupe/actors/services/node_services.hpp>
#include <troupe/actors/support/thread_actor.hpp>
#include <troupe/messages/caf_error.hpp>

namespace troupe::passes {

namespace {

auto make_handlers(services::node_services& here) {
  return std::tuple{
    [&here](contracts::burst_ptr& work, const contracts::graph_task_actor& owner) {
      const services::node_services::own_thread own(here, "a backward pass");
      run_and_return(here, std::move(work), owner);
    },
    [&here](support::merge_atom, contracts::gradients_ptr& all,
            const contracts::table_ptr& more) -> caf::result<contracts::gradients_ptr> {
      try {
        c10::AutoGradMode record(more->has_graph());
        auto sum = std::make_shared<engine::gradient_table>(*all);
        all = nullptr;  // merge() then adds in place to gradients that have no other owner
        sum->merge(std::move(*more));
        return contracts::gradients_ptr{std::move(sum)};
      } catch (const std::exception& reason) {
        return make_error(reason, "adding up gradients on node '" + here.name() + "'");
      }
    },
    [](const contracts::garbage_ptr&) {},
  };
}

}  // namespace

contracts::cpu_continuation_actor spawn_cpu_continuation(services::node_services& here) {
  if (here.networked()) {
    auto make = [&here](const caf::actor&) { return make_handlers(here); };
    return caf::actor_cast<contracts::cpu_continuation_actor>(
      support::spawn_handlers_with_thread(here.system(), "troupe.backward", make));
  }
  return here.system().spawn([&here](contracts::cpu_continuation_actor::pointer) {
    const auto behave = [](auto... handlers) { return contracts::cpu_continuation_actor::behavior_type{handlers...}; };
    return std::apply(behave, make_handlers(here));
  });
}

}  // namespace troupe::passes
