// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/network/message_values_test.cpp
#pragma once

#include <cstddef>
#include <string_view>

namespace troupe::network {

/// Checks the values of a message before CAF reads them, because CAF trusts the bytes. CAF makes a value of each type that a
/// message names, even if nobody expects such a value. For some types, CAF throws in the middle, nests until the stack ends,
/// makes actors, or takes as much memory as the bytes announce. CAF throws if the id of a node is a URI. CAF takes up to a
/// hundred bytes of memory for a value that came as one byte. If CAF could not write a message to its end, the receiver reads
/// an empty message. An *own* type is a type of the user's program: its layout is not known here. An inner message is a message
/// within a message. If an inner message has a value of troupe's, or is no message, CAF may stop in the middle of it. CAF then
/// goes on at a byte that is not known here.
///   MV-1  a message is wrong if it names a type of CAF that no node sends: `@config_value`, `settings`, `@group`, messages of
///         streams and of brokers, and so on. Of CAF's types, only those may come whose layouts the .cpp file lists.
///   MV-2  a message is wrong if a value is not complete or nests deeper than `most_nested`. Each node's id is that of an actor
///         system, or CAF's id for no node; a pointer to an actor names both an actor and a node, or neither. The bytes may end
///         before the values of the last types.
///   MV-3  bytes behind the first value of an own type, or behind an inner message that CAF might not read to its end, have no
///         known layout. A message is wrong if `std::vector<char>` is a type of such bytes, or if they hold the name of a type
///         that MV-1 forbids. It is also wrong if node ids may follow, and the bytes hold the number by which CAF marks an id
///         as a URI.
///   MV-4  a message is wrong if it has more than `most_values` values and elements of lists, or more than `most_pointers`
///         pointers to actors. Elements and pointers behind a value of an own type are not counted (MV-3).
struct message_values {
  static constexpr std::size_t most_nested = 64;
  /// The most values of a message, together with the elements of its lists of texts and of pointers to actors.
  static constexpr std::size_t most_values = std::size_t{1} << 20;
  static constexpr std::size_t most_pointers = std::size_t{1} << 17;

  bool is_wrong = false;
  bool has_unknown_layout = false;  // whether some bytes have no known layout (MV-3)
  std::size_t pointers = 0;         // number of pointers to actors that are not null and not behind a value of an own type
  std::string_view node;            // bytes of the node's id in the last of these pointers; points into the message

  /// Checks a message. `types`: the names of its types, as "@<>+@atom+troupe.call". `values`: the bytes that follow the types.
  static message_values of(std::string_view types, std::string_view values) noexcept;
  /// Checks an error without a list of types, as in the report that an actor has ended. If the other end has not registered the
  /// type of a value in the error, the bytes end before the values of the error.
  static message_values of_error(std::string_view bytes) noexcept;
};

/// Whether each type of the list is one with which nodes answer each other: a type of troupe, a plain type, or a pointer to an
/// actor.
bool is_answer_of_node(std::string_view types) noexcept;

/// Whether the bytes are the id of an actor system; false for CAF's id of no node, and for a URI. Pre: there are
/// message_outline::node_bytes bytes.
bool is_actor_system(std::string_view node) noexcept;

/// CAF's list of the types of a message that is an error.
inline constexpr std::string_view types_of_error = "@<>+@error";

}  // namespace troupe::network
