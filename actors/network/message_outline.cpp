// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/network/message_outline.hpp>

#include <cstddef>

#include <troupe/actors/network/front_reader.hpp>

namespace troupe::network {

namespace {

constexpr std::string_view atom_first = "@<>+@atom";

/// Whether each plus sign begins the name of a type. CAF passes over a plus sign at the end: it would read the same types from two lists.
bool is_list_of_names(std::string_view types) noexcept {
  if (!types.starts_with(message_outline::begin_of_types)) return false;
  types.remove_prefix(message_outline::begin_of_types.size());
  return types.empty() || (types.front() == '+' && types.back() != '+' && types.find("++") == std::string_view::npos);
}

}  // namespace

bool message_outline::begins_with_atom() const noexcept {
  return types.starts_with(atom_first) && (types.size() == atom_first.size() || types[atom_first.size()] == '+');
}

std::optional<message_outline> outline_of(std::string_view payload, bool is_routed) {
  front_reader from(payload);
  if (is_routed && !from.take(2 * message_outline::node_bytes)) return std::nullopt;
  if (from.take_size() != std::size_t{0}) return std::nullopt;  // further actors
  return content_of(from.left());
}

std::optional<message_outline> content_of(std::string_view message) {
  front_reader from(message);
  if (from.take(2) != std::string_view("\0\0", 2)) return std::nullopt;  // no number of a type: a name follows
  const auto length = from.take_size();
  const auto types = length ? from.take(*length) : std::nullopt;
  if (!types || !is_list_of_names(*types)) return std::nullopt;
  message_outline result{*types, from.left(), 0};
  if (!result.begins_with_atom()) return result;
  const auto first = from.take_number();
  if (!first) return std::nullopt;
  result.first = *first;
  return result;
}

}  // namespace troupe::network
