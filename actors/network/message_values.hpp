// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/network/message_values_test.cpp
#pragma once

#include <cstddef>
#include <string_view>

namespace troupe::network {

/// Checks the values of a message before CAF reads them. CAF makes a value of each type that a message names, whether anybody
/// expects such a value or not, and trusts the bytes. Some types of CAF throw in the middle, nest until the stack ends, take as
/// much memory as they announce, or make actors. CAF throws at ids of nodes that are URIs. CAF takes up to a hundred bytes of
/// memory for a value that came as one byte, and all the memory that a `std::vector<char>` announces. If CAF could not write a
/// message to its end, the receiver reads an empty message. An *own* type is a type of the user's program: its layout is not
/// known here. An inner message is a message within a message. If an inner message has a value of troupe's, or is no message,
/// CAF may stop in the middle of it and go on at a byte that is not known here.
///   MV-1  a message is wrong if it names a type of CAF that no node sends: `@config_value`, `settings`, `@group`, messages of
///         streams and of brokers, and so on. Of CAF's types, only those whose layouts were reviewed may come.
///   MV-2  a message is wrong if a value is not complete, if values nest deeper than `most_nested`, or if the id of a node is
///         neither that of an actor system nor CAF's id for no node. A pointer to an actor names both an actor and a node, or
///         neither. The last types of the list may have no values.
///   MV-3  behind the first value of an own type, and behind an inner message that CAF might not read to its end, the layout
///         of the bytes is not known. A message is wrong if these bytes hold the name of a type that MV-1 forbids or, where ids
///         of nodes may follow, the number that marks an id as a URI. No `std::vector<char>` may follow there.
///   MV-4  a message is wrong if it has more than `most_parts` values and elements of lists, or more than `most_pointers`
///         pointers to actors. Elements and pointers behind a value of an own type are not counted (MV-3).
struct message_values {
  static constexpr std::size_t most_nested = 64;
  /// The most values of a message, together with the elements of its lists of texts and of pointers to actors.
  static constexpr std::size_t most_parts = std::size_t{1} << 20;
  static constexpr std::size_t most_pointers = std::size_t{1} << 17;

  bool is_wrong = false;
  bool has_own_types = false;  // whether there is a value behind which the layout is not known (MV-3)
  std::size_t pointers = 0;    // number of pointers to actors that are not null and not behind a value of an own type
  std::string_view node;       // bytes of the node's id in the last of these pointers; points into the message

  /// Checks a message. `types`: the names of its types, as "@<>+@atom+troupe.call". `values`: the bytes that follow the types.
  static message_values of(std::string_view types, std::string_view values) noexcept;
  /// Checks an error that stands alone, as in the news that an actor has ended. If the other end has not registered the type of
  /// a value in the error, the bytes end before the values of the error.
  static message_values of_error(std::string_view bytes) noexcept;
};

/// Whether nodes answer each other with all types of the list: types of troupe, plain types, pointers to actors.
bool is_answer_of_node(std::string_view types) noexcept;

/// Whether the bytes are the id of an actor system; false for the id of no node, and for a URI. Pre: there are
/// message_outline::node_bytes bytes.
bool is_actor_system(std::string_view node) noexcept;

/// CAF's list of the types of a message that is an error.
inline constexpr std::string_view types_of_error = "@<>+@error";

}  // namespace troupe::network
