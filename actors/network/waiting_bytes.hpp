// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/slow_readers_test.cpp
#pragma once

#include <cstddef>

#include <caf/actor.hpp>
#include <caf/fwd.hpp>

/// Functions for the bytes that wait to leave for another actor system.
namespace troupe::network {

/// Returns the actor of CAF that writes messages for other actor systems into connections, in the order in which the messages
/// came. Pre: the system has a network.
caf::actor message_writer(caf::actor_system& system);

/// How many bytes wait to leave by the connection to `to`; 0 if there is no connection or the network is CAF's own. Messages
/// that message_writer() has not written yet do not count. Only actors that run in the network threads may call it.
std::size_t waiting_bytes(caf::actor_system& system, const caf::node_id& to);

}  // namespace troupe::network
