// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <caf/fwd.hpp>

#include <troupe/actors/contracts/membership.hpp>
#include <troupe/actors/membership/membership_options.hpp>

namespace troupe::membership {

/// Spawns a membership actor: in the network threads if the system has a network, else on the scheduler. Only an exit message
/// ends the actor.
contracts::membership_host spawn_membership(caf::actor_system& system, const membership_options& options);

}  // namespace troupe::membership
