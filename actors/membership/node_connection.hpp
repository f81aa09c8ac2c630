// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/membership/membership_network_test.cpp
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include <caf/fwd.hpp>

#include <troupe/actors/membership/route.hpp>

/// Functions for the TCP connection to another actor system. Only actors in the network thread may call them. On a system
/// without a network any thread may; they do nothing.
namespace troupe::membership {

/// Ends the connection, if there is one. Bytes that wait to leave are dropped. Both ends see the end.
void cut_connection(caf::actor_system& system, const caf::node_id& to);

/// What the connection sends by: "TCP" or "shared memory"; "no network" if there is no connection.
const char* transport_to(caf::actor_system& system, const caf::node_id& other);

/// The process with which the connection shares memory, as the kernel says. Nothing if the connection shares none; 0 if the
/// kernel names no process.
std::optional<std::uint64_t> process_beyond(caf::actor_system& system, const caf::node_id& other);

/// The addresses of the connection's ends; empty if there is no connection.
std::optional<route> route_to(caf::actor_system& system, const caf::node_id& other);

/// Whether bytes came on the connection within the time `lately`. Bytes that come by shared memory do not count.
bool has_heard(caf::actor_system& system, const caf::node_id& from, std::chrono::nanoseconds lately);

}  // namespace troupe::membership
