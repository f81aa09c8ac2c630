// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/passes/cpu_continuation.hpp>

#include <tuple>

#include <ATen/core/grad_mode.h>
#include <caf/exit_reason.hpp>
#include <caf/send.hpp>

#include <troupe/actors/passes/burst_runner.hpp>
#include <troupe/actors/services/burst_threads.hpp>
#include <troupe/actors/services/garbage.hpp>
#include <troupe/actors/services/node_actors.hpp>
#include <troupe/actors/services/node_identity.hpp>
#include <troupe/actors/services/running_work.hpp>
#include <troupe/actors/support/thread_actor.hpp>
#include <troupe/messages/caf_error.hpp>

namespace troupe::passes {

namespace {

auto make_handlers(uses<with_self, with_garbage> here) {
  return std::tuple{
    [here](contracts::merge_gradients& of) -> caf::result<contracts::gradients_ptr> {
      try {
        c10::AutoGradMode record(of.more->has_graph());
        auto sum = std::make_shared<engine::gradient_table>(*of.all);
        of.all = nullptr;  // merge() then adds in place to gradients that have no other owner
        sum->merge(std::move(*of.more));
        return contracts::gradients_ptr{std::move(sum)};
      } catch (const std::exception& reason) {
        return make_error(reason, "adding up gradients on node '" + here.self.name() + "'");
      }
    },
    [here](contracts::discarded& what) { here.garbage.free(std::move(what)); },
  };
}

void run_one(const thread_services& here, contracts::burst_job what) {
  const services::own_thread own(here.running, "a backward pass");
  const services::burst_threads::waiting_observer tells(here.bursts);
  run_and_return(here, std::move(what.work), what.owner);
}

}  // namespace

contracts::burst_thread_actor spawn_burst_thread(const thread_services& here) {
  auto make = [here](const contracts::burst_thread_actor& me) {
    return std::tuple{[here, me](contracts::burst_job& first) {
      services::burst_threads::order order{std::move(first)};
      while (order.next) {
        run_one(here, std::move(*order.next));
        order = here.bursts.ended(me);
      }
      if (order.ends) caf::anon_send_exit(me, caf::exit_reason::user_shutdown);
    }};
  };
  return support::spawn_handlers<contracts::burst_thread_actor>(*here.actors.system, "troupe.backward", make);
}

contracts::cpu_continuation_actor spawn_cpu_continuation(uses<with_self, with_actors, with_garbage> here) {
  auto make = [here](const contracts::cpu_continuation_actor&) { return make_handlers(here); };
  return support::spawn_handlers<contracts::cpu_continuation_actor>(*here.actors.system, "troupe.sums", make);
}

}  // namespace troupe::passes
