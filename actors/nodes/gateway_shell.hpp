// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <caf/actor_cast.hpp>
#include <caf/error.hpp>
#include <caf/send.hpp>

#include <troupe/actors/calls/call_worker.hpp>
#include <troupe/actors/nodes/gateway_state.hpp>
#include <troupe/actors/nodes/node_parts.hpp>
#include <troupe/actors/services/meeting.hpp>
#include <troupe/actors/support/atoms.hpp>
#include <troupe/messages/caf_error.hpp>

namespace troupe::nodes {

/// Counts and logs what the node has refused. `sender`: the actor that has sent it, if it is known: a flood of one node then hides no line
/// about another.
inline void note_refusal(services::node_services& here, const std::string& why, const caf::strong_actor_ptr& sender) {
  ++here.counts().requests_refused;
  here.log().warn(
    "nodes", [&] { return "refused a message: " + why; },
    [&] { return sender ? std::hash<caf::node_id>()(sender->node()) : 0; });
}

/// What the handlers of the `gateway` actor share. A shell is made for each message; its state is the actor's.
template <class Self>
struct gateway_shell {
  Self self;
  gateway_state& state;
  node_parts& parts;
  services::node_services& here;

  explicit gateway_shell(Self s) : self(s), state(s->state), parts(*s->state.parts), here(*s->state.here) {}

  contracts::gateway_actor me() const { return contracts::gateway_actor{self}; }

  /// Sets an alarm that sends this actor a message. The alarm keeps the message, and does not keep the actor.
  template <class... Message>
  support::deadline_clock::alarm send_later(std::chrono::nanoseconds from_now, Message... message) const {
    return here.deadlines().set(from_now, [weak = caf::actor_cast<caf::weak_actor_ptr>(me()), message...] {
      if (auto strong = weak.lock()) caf::anon_send(caf::actor_cast<contracts::gateway_actor>(strong), message...);
    });
  }

  /// Sets an alarm that tells this actor that the deadline of the call has passed.
  template <class Call>
  void set_deadline(const std::shared_ptr<Call>& job, std::chrono::nanoseconds from_now) const {
    job->expiry = send_later(from_now, support::deadline_atom::value, job);
  }

  /// As services::meet().
  template <class F, class G>
  void meet(node_id who, std::chrono::nanoseconds limit, F met, G not_met) const {
    services::meet(self, here, state.membership, who, limit, met, not_met);
  }

  /// Why the node of the message that the actor handles may not ask what it asks: an error, which is counted and logged. Nothing if the
  /// node may. `what`: for the text.
  caf::error why_not_asked(bool rights::role_rights::*right, const char* what) const {
    const auto why = parts.rights.why_not(self->current_sender(), right, what);
    if (why.empty()) return {};
    note_refusal(here, why, self->current_sender());
    return make_error(errc::refused, why);
  }

  caf::error no_context(const context_id& id) const {
    const auto why = parts.contexts.unknown(id);
    return make_error(why.code(), why.what());
  }
};

template <class Self>
gateway_shell(Self) -> gateway_shell<Self>;

/// Refuses calls that have not started (GW-13).
template <class Self>
void refuse_waiting(Self self, const std::vector<contracts::incoming_call_ptr>& refused, const error& why) {
  const gateway_shell sh(self);
  for (const auto& job : refused) {
    sh.state.waiting.erase(job);
    sh.state.pool.take(job->ticket, job->request.depth, job->request.payload.message.node);
    sh.here.deadlines().call_off(job->expiry);
    calls::refuse_call(*job, why, sh.here);
  }
}

}  // namespace troupe::nodes
