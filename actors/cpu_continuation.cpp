// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/cpu_continuation.hpp>

#include <tuple>

#include <ATen/core/grad_mode.h>
#include <caf/actor_cast.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <troupe/actors/burst_runner.hpp>
#include <troupe/actors/node_services.hpp>
#include <troupe/actors/thread_actor.hpp>
#include <troupe/messages/caf_error.hpp>

namespace troupe {

namespace {

auto make_handlers(node_services& here) {
  return std::tuple{
    [&here](burst_ptr& work, const graph_task_actor& owner) {
      const node_services::own_thread own(here);
      run_and_return(here, std::move(work), owner);
    },
    [&here](merge_atom, gradients_ptr& all, const table_ptr& more) -> caf::result<gradients_ptr> {
      try {
        c10::AutoGradMode record(more->has_graph());
        auto sum = std::make_shared<engine::gradient_table>(*all);
        all = nullptr;  // a gradient that nobody else holds is then added to in place
        sum->merge(std::move(*more));
        return gradients_ptr{std::move(sum)};
      } catch (const std::exception& reason) {
        return make_error(reason, "adding up gradients on node '" + here.name() + "'");
      }
    },
    [](const garbage_ptr&) {},
  };
}

}  // namespace

cpu_continuation_actor spawn_cpu_continuation(node_services& here) {
  if (here.networked()) {
    auto make = [&here](const caf::actor&) { return make_handlers(here); };
    return caf::actor_cast<cpu_continuation_actor>(spawn_handlers_with_thread(here.system(), "troupe.backward", make));
  }
  return here.system().spawn([&here](cpu_continuation_actor::pointer) {
    const auto behave = [](auto... handlers) { return cpu_continuation_actor::behavior_type{handlers...}; };
    return std::apply(behave, make_handlers(here));
  });
}

}  // namespace troupe
