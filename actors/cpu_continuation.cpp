// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/cpu_continuation.hpp>

#include <ATen/core/grad_mode.h>

#include <troupe/actors/company.hpp>
#include <troupe/messages/caf_error.hpp>

namespace troupe {

cpu_continuation_actor::behavior_type make_cpu_continuation(cpu_continuation_actor::pointer, company* here) {
  return {
    [=](burst_ptr& work, const graph_task_actor& owner) {
      const company::own_thread own(*here);
      run_and_return(*here, std::move(work), owner);
    },
    [=](merge_atom, gradients_ptr& all, const table_ptr& more) -> caf::result<gradients_ptr> {
      try {
        c10::AutoGradMode record(more->has_graph());
        auto sum = std::make_shared<engine::gradient_table>(*all);
        all = nullptr;  // a gradient that nobody else holds is then added to in place
        sum->merge(std::move(*more));
        return gradients_ptr{std::move(sum)};
      } catch (const std::exception& reason) {
        return make_error(reason, "adding up gradients on node '" + here->name() + "'");
      }
    },
    [](const garbage_ptr&) {},
  };
}

}  // namespace troupe
