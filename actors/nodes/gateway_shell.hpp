// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <caf/error.hpp>

#include <troupe/actors/nodes/gateway_state.hpp>
#include <troupe/actors/nodes/node_parts.hpp>
#include <troupe/messages/caf_error.hpp>

namespace troupe::nodes {

/// What the handlers of the `gateway` actor share. A shell is made for each message; its state is the actor's.
template <class Self>
struct gateway_shell {
  Self self;
  gateway_state& state;
  node_parts& parts;
  services::node_services& here;

  explicit gateway_shell(Self s) : self(s), state(s->state), parts(*s->state.parts), here(*s->state.here) {}

  contracts::gateway_actor me() const { return contracts::gateway_actor{self}; }

  caf::error no_context(const context_id& id) const {
    const auto why = parts.contexts.unknown(id);
    return make_error(why.code(), why.what());
  }
};

template <class Self>
gateway_shell(Self) -> gateway_shell<Self>;

}  // namespace troupe::nodes
