// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/network/message_values_test.cpp
#pragma once

#include <cstddef>
#include <string_view>

namespace troupe::network {

/// What CAF would meet while it reads a message. CAF makes a value of each type that a message names, whether anybody expects
/// such a value or not, and trusts what it reads: some types of CAF throw in the middle, nest until the stack ends, take as
/// much memory as they announce, or make actors. So the values are looked at first, as CAF has written them. CAF's reader
/// throws at ids of nodes that are URIs. It takes up to a hundred bytes of memory for a value that came as one byte, and all
/// the memory that a `std::vector<char>` announces. A message that CAF could not write to its end is read as an empty message.
/// An *own* type is a type of the user's program: nobody knows here how it is written. CAF may stop in the middle of an inner
/// message (a message within a message) that has a value of troupe's or is no message. Nobody knows here where CAF then goes
/// on.
///   MV-1  a message is wrong that names a type of CAF's which no node sends: `@config_value`, `settings`, `@group`, messages
///         of streams and of brokers, and so on. Only types that were read through, with their layouts, may come.
///   MV-2  a message is wrong in which a value is not complete, values nest deeper than `most_nested`, or the id of a node is
///         not that of an actor system. A pointer to an actor names both an actor and a node, or neither. A message may end
///         where a value would begin.
///   MV-3  behind the first value of an own type, and behind an inner message that CAF might not read to its end, the bytes are
///         searched for names that are wrong by MV-1 and, if ids of nodes may follow, for the mark of a URI. No
///         `std::vector<char>` stands there.
///   MV-4  a message is wrong that has more than `most_parts` values and elements of lists of texts, or more than
///         `most_pointers` to actors. Behind a value of an own type nobody counts (MV-3).
struct message_values {
  static constexpr std::size_t most_nested = 64;
  /// Values of a message, and elements of those that are lists of texts or of pointers to actors.
  static constexpr std::size_t most_parts = std::size_t{1} << 20;
  static constexpr std::size_t most_pointers = std::size_t{1} << 17;

  bool is_wrong = false;
  bool has_own_types = false;  // or another value behind which the layout of the bytes is not known (MV-3)
  std::size_t pointers = 0;    // to actors, without null pointers, and without those behind a value of an own type
  std::string_view node;       // of the last one of these pointers: the bytes of the id; part of the message

  /// Of a message: the names of its types, as "@<>+@atom+troupe.call", and the bytes that follow them.
  static message_values of(std::string_view types, std::string_view values) noexcept;
  /// Of an error that stands alone, as in the news that an actor has ended. If the other end has not registered the type of a
  /// value in the error, the bytes end before the values of the error.
  static message_values of_error(std::string_view bytes) noexcept;
};

/// Whether nodes answer each other with all types of the list: those of troupe, plain ones, pointers to actors.
bool is_answer_of_node(std::string_view types) noexcept;

/// Whether the bytes are the id of an actor system, and not that of no node or a URI. Pre: there are
/// message_outline::node_bytes bytes.
bool is_actor_system(std::string_view node) noexcept;

/// CAF's list of the types of a message that is an error.
inline constexpr std::string_view types_of_error = "@<>+@error";

}  // namespace troupe::network
