// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <caf/actor_cast.hpp>
#include <caf/error.hpp>
#include <caf/send.hpp>

#include <troupe/actors/contracts/gateway.hpp>
#include <troupe/actors/contracts/graph_task.hpp>
#include <troupe/actors/passes/graph_task_state.hpp>
#include <troupe/actors/services/meeting.hpp>
#include <troupe/actors/services/node_services.hpp>
#include <troupe/actors/support/quoted_names.hpp>

namespace troupe::passes {

/// What initiator_shell and participant_shell share: how a graph task reports to the initiator, and how a graph task ends. A
/// shell is made for each message and works on the state of the actor.
template <class Self>
struct pass_shell {
  Self self;
  graph_task_state& state;
  services::node_services& here;
  const pass_terms& terms;

  explicit pass_shell(Self s) : self(s), state(s->state), here(*s->state.here), terms(*s->state.terms) {}

  contracts::graph_task_actor me() const { return contracts::graph_task_actor{self}; }

  template <class Report>
  void report(Report what) {
    if (state.lead) return self->send(me(), std::move(what));
    services::report_to(self, here, terms.context.node, std::move(what));
  }

  participant_failed failure(errc code, std::string text) const {
    return {terms.context, terms.pass, here.id(), static_cast<std::uint8_t>(code), std::move(text)};
  }

  void fail(errc code, std::string text) { report(failure(code, std::move(text))); }

  template <class Result>
  caf::typed_response_promise<Result> promise() {
    return self->template make_response_promise<caf::typed_response_promise<Result>>();
  }

  std::string names_of(const std::vector<node_id>& nodes) const {
    std::string names;
    for (auto who : nodes) support::add_quoted(names, here.directory().name(who));
    return names;
  }

  /// Makes the burst that runs, if any, end soon.
  void stop_burst() {
    terms.stop->store(true);
    here.gradient_credits().wake();
  }

  void drop_buffers() {
    state.deliveries.clear();
    if (state.terms->task) here.discard(std::move(state.terms->task));
  }

  /// Ends the actor: at once, or when the burst that runs is back.
  void end() {
    state.closed = true;
    stop_burst();
    if (state.part->away()) return;
    drop_buffers();
    self->quit();
  }
};

}  // namespace troupe::passes
