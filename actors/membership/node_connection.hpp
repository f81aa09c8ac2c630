// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>

#include <caf/fwd.hpp>

/// The TCP connection to another actor system, if there is one. Only actors in the network thread may call these, or
/// anybody where the system has no network.
namespace troupe::membership {

/// Ends it, with all that waits to leave on it: both ends find that it is over.
void cut_connection(caf::actor_system& system, const caf::node_id& to);

/// Whether the last bytes came that lately. Bytes that come by shared memory do not count.
bool has_heard(caf::actor_system& system, const caf::node_id& from, std::chrono::nanoseconds lately);

}  // namespace troupe::membership
