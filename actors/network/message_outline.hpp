// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace troupe::network {

/// How the payload of a message to an actor begins, read from the bytes that CAF wrote.
struct message_outline {
  /// How CAF writes a node: the kind of the id, the number of the process, and the host.
  static constexpr std::size_t node_bytes = 32;
  /// How CAF begins the list of the types.
  static constexpr std::string_view begin_of_types = "@<>";

  std::string_view types;   // as CAF names the types of the values: "@<>+@atom+troupe.call"
  std::string_view values;  // the bytes that follow the types
  std::uint64_t first = 0;  // the first value, if it is an atom

  bool begins_with_atom() const noexcept;
};

/// Reads the beginning of a message as it stands in a payload, or within another message. Empty: the bytes are not as CAF writes them. So a list
/// of types is written in one way only: no name in it is empty.
std::optional<message_outline> content_of(std::string_view message);

/// Reads the beginning of a payload. `is_routed`: the nodes that the message is from and for come first. Empty: the bytes are not as CAF
/// writes them, or the message is to pass through further actors; nodes send no such message.
std::optional<message_outline> outline_of(std::string_view payload, bool is_routed);

}  // namespace troupe::network
