// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/network/message_outline.hpp>

#include <endian.h>
#include <cstddef>
#include <cstring>

namespace troupe::network {

namespace {

constexpr std::string_view atom_first = "@<>+@atom";
/// Numbers of less than this many bytes say how long the names of types can be.
constexpr int most_of_length = 4;

/// Takes bytes from the front of a text. After a failure nothing is left.
class front_reader {
 public:
  explicit front_reader(std::string_view from) noexcept : left_(from) {}

  std::optional<std::string_view> take(std::size_t bytes) {
    if (left_.size() < bytes) return std::nullopt;
    const auto result = left_.substr(0, bytes);
    left_.remove_prefix(bytes);
    return result;
  }

  /// A size as CAF writes it: seven bits in each byte, the lowest first; the eighth bit says that more follow.
  std::optional<std::size_t> take_size() {
    std::size_t result = 0;
    for (int i = 0; i < most_of_length; ++i) {
      const auto next = take(1);
      if (!next) return std::nullopt;
      const auto bits = static_cast<unsigned char>(next->front());
      result |= static_cast<std::size_t>(bits & 0x7FU) << (7 * i);
      if ((bits & 0x80U) == 0) return result;
    }
    return std::nullopt;
  }

  std::optional<std::uint64_t> take_number() {
    const auto bytes = take(sizeof(std::uint64_t));
    if (!bytes) return std::nullopt;
    std::uint64_t result = 0;
    std::memcpy(&result, bytes->data(), sizeof result);
    return be64toh(result);
  }

  std::string_view left() const noexcept { return left_; }

 private:
  std::string_view left_;
};

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
  if (!types || !types->starts_with(message_outline::begin_of_types)) return std::nullopt;
  message_outline result{*types, from.left(), 0};
  if (!result.begins_with_atom()) return result;
  const auto first = from.take_number();
  if (!first) return std::nullopt;
  result.first = *first;
  return result;
}

}  // namespace troupe::network
