// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>

#include <caf/node_id.hpp>

#include <troupe/actors/network/message_head.hpp>

/// What frames_fuzz and its seeds agree on.
namespace troupe::fuzz {

/// A number, or an atom, as CAF writes it.
inline std::string number_text(std::uint64_t number) {
  std::string result;
  for (int shift = 56; shift >= 0; shift -= 8) result += static_cast<char>(number >> shift);
  return result;
}

/// The id of the node that gets the messages, as CAF writes it.
inline std::string own_node() {
  const auto kind = number_text(static_cast<std::uint64_t>(caf::node_id::default_data::class_id));
  return kind + std::string(network::message_outline::node_bytes - kind.size(), 'n');
}

/// The name of the type that the program has registered.
inline constexpr const char* own_type = "own.type";

}  // namespace troupe::fuzz
