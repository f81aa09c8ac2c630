// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/membership/membership_network_test.cpp
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include <caf/fwd.hpp>

#include <troupe/actors/membership/route.hpp>

/// Functions for the TCP connection to another actor system. Only actors that run in the network threads may call them. On a
/// system without a network any thread may call them, and they do nothing.
namespace troupe::membership {

/// Ends the connection, if there is one. Bytes that wait to leave are dropped. Both ends see the end.
void cut_connection(caf::actor_system& system, const caf::node_id& to);

/// How the connection sends: "TCP" or "shared memory"; "no network" if there is no connection.
const char* transport_to(caf::actor_system& system, const caf::node_id& other);

/// The process with which this process shares memory for the connection. Nothing if the connection uses no shared memory; 0 if
/// the kernel does not name the process.
std::optional<std::uint64_t> process_beyond(caf::actor_system& system, const caf::node_id& other);

/// The addresses of the connection's ends; empty if there is no connection.
std::optional<route> route_to(caf::actor_system& system, const caf::node_id& other);

/// Whether bytes came on the connection within the time `lately`. Bytes that come by shared memory do not count.
bool has_heard(caf::actor_system& system, const caf::node_id& from, std::chrono::nanoseconds lately);

}  // namespace troupe::membership
