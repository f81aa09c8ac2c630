// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <caf/fwd.hpp>

#include <troupe/actors/contracts/membership.hpp>
#include <troupe/actors/membership/membership_state.hpp>

namespace troupe::membership {

/// The behaviour of a membership actor for any host: `membership_host::stateful_broker_pointer<membership_state>` in the
/// network thread, `membership_host::stateful_pointer<membership_state>` on the scheduler.
template <class Self>
contracts::membership_host::behavior_type make_membership(Self self, const membership_options& options);

/// Spawns a membership actor: in the network thread if the system has one, else on the scheduler. Only an exit message ends the
/// actor.
contracts::membership_host spawn_membership(caf::actor_system& system, const membership_options& options);

}  // namespace troupe::membership
