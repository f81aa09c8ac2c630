// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "parts.hpp"

namespace troupe::bench {

/// Opens `count` connections to a node, sends the beginning of a handshake of TLS by each, and keeps them open. A connection that the
/// node closes is opened again. Prints "ready" when all have been opened once; goes on until it is killed.
///   address, port, count
void stall_at_the_gate(const part_arguments& with);

/// Opens `rate` connections a second, one after another, and sends bytes by each that no node sends. Prints "ready" after the first
/// hundred; goes on until it is killed.
///   address, port, rate
void send_hostile_bytes(const part_arguments& with);

/// Plays `count` hostile inputs to a node, in so many parts (tests/support/hostile_client.hpp). Prints "played_1" and so on: how many
/// connections it has made when the part is over. At the end "messages": how many of the inputs came after a proof.
///   address, port, kit, count, parts
void play_hostile_inputs(const part_arguments& with);

/// Two loops that do nothing but send and receive memory of 16 MiB, by plain TCP or, with a kit, by the session of TLS that nodes use. No
/// node and no actor runs. drain_bytes() listens at all addresses, prints "ready", and returns when the other loop has ended.
///   listen, kit                      -> mbit
void drain_bytes(const part_arguments& with);
///   address, port, kit, seconds
void pour_bytes(const part_arguments& with);

}  // namespace troupe::bench
