// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <caf/fwd.hpp>

#include <troupe/actors/membership_contract.hpp>
#include <troupe/actors/membership_state.hpp>

namespace troupe {

/// The behaviour for any host: `membership_host::stateful_broker_pointer<membership_state>` in the network thread,
/// `membership_host::stateful_pointer<membership_state>` on the scheduler.
template <class Self>
membership_host::behavior_type make_membership(Self self, membership_options options);

/// Starts one in the network thread where the system has one, else on the scheduler. It ends by an exit message only.
membership_host spawn_membership(caf::actor_system& system, membership_options options);

}  // namespace troupe
