// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/network/message_head.hpp>

#include <algorithm>

namespace troupe::network {

namespace {

// The offsets of the fields in a header. Numbers are big-endian.
constexpr std::size_t operation_at = 0;
constexpr std::size_t note_at = 1;
constexpr std::size_t flags_at = 3;
constexpr std::size_t payload_at = 4;
constexpr std::size_t message_at = 8;
constexpr std::size_t source_at = 16;
constexpr std::size_t target_at = 24;

constexpr std::string_view atom_first = "@<>+@atom";

/// Whether a name follows each plus sign. Other lists are refused: CAF ignores a plus sign at the end, so two different lists
/// would mean the same types.
bool is_list_of_names(std::string_view types) noexcept {
  if (!types.starts_with(message_outline::begin_of_types)) return false;
  types.remove_prefix(message_outline::begin_of_types.size());
  return types.empty() || (types.front() == '+' && types.back() != '+' && types.find("++") == std::string_view::npos);
}

}  // namespace

message_head message_head::read(const char* from) noexcept {
  message_head result;
  result.operation = static_cast<std::uint8_t>(from[operation_at]);
  result.note = static_cast<std::uint8_t>(from[note_at]);
  result.flags = static_cast<std::uint8_t>(from[flags_at]);
  const auto* numbers = reinterpret_cast<const unsigned char*>(from);
  result.payload = boost::endian::load_big_u32(numbers + payload_at);
  result.message = boost::endian::load_big_u64(numbers + message_at);
  result.source = boost::endian::load_big_u64(numbers + source_at);
  result.target = boost::endian::load_big_u64(numbers + target_at);
  return result;
}

void message_head::write(char* to) const noexcept {
  std::fill_n(to, bytes, '\0');
  to[operation_at] = static_cast<char>(operation);
  set_note(to, note);
  to[flags_at] = static_cast<char>(flags);
  auto* const numbers = reinterpret_cast<unsigned char*>(to);
  boost::endian::store_big_u32(numbers + payload_at, payload);
  boost::endian::store_big_u64(numbers + message_at, message);
  boost::endian::store_big_u64(numbers + source_at, source);
  boost::endian::store_big_u64(numbers + target_at, target);
}

void message_head::set_note(char* of, std::uint8_t note) noexcept { of[note_at] = static_cast<char>(note); }

bool message_outline::begins_with_atom() const noexcept {
  return types.starts_with(atom_first) && (types.size() == atom_first.size() || types[atom_first.size()] == '+');
}

std::optional<message_outline> outline_of(std::string_view payload, bool is_routed) {
  front_reader from(payload);
  if (is_routed && !from.take(2 * message_outline::node_bytes)) return std::nullopt;
  if (from.take_size() != std::size_t{0}) return std::nullopt;  // the message is to pass through further actors
  return content_of(from.left());
}

std::optional<message_outline> content_of(std::string_view message) {
  front_reader from(message);
  if (from.take(2) != std::string_view("\0\0", 2)) return std::nullopt;  // not a type's number: names of types follow
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
