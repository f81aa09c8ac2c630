// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>

#include <caf/fwd.hpp>

/// The TCP connection to another actor system, if there is one. Only actors in the network thread may call these, or
/// anybody where the system has no network.
namespace troupe::membership {

/// Ends the connection, and drops all bytes that wait to leave: both ends see the end.
void cut_connection(caf::actor_system& system, const caf::node_id& to);

/// "TCP" or "shared memory"; "no network" if the system has no connection to the other one.
const char* transport_to(caf::actor_system& system, const caf::node_id& other);

/// Whether bytes came within that time. Bytes that come by shared memory do not count.
bool has_heard(caf::actor_system& system, const caf::node_id& from, std::chrono::nanoseconds lately);

}  // namespace troupe::membership
