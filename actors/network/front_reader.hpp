// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/network/message_outline_test.cpp
#pragma once

#include <endian.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

namespace troupe::network {

/// Takes what CAF has written from the front of a text.
class front_reader {
 public:
  explicit front_reader(std::string_view from) noexcept : left_(from) {}

  std::optional<std::string_view> take(std::size_t bytes) noexcept {
    if (left_.size() < bytes) return std::nullopt;
    const auto result = left_.substr(0, bytes);
    left_.remove_prefix(bytes);
    return result;
  }

  /// A size as CAF writes it: seven bits in each byte, the lowest first; the eighth bit says that more follow. CAF itself takes sizes of
  /// more bytes, which no sequence that fits into a message has.
  std::optional<std::size_t> take_size() noexcept {
    std::size_t result = 0;
    for (int i = 0; i < most_of_size; ++i) {
      const auto next = take(1);
      if (!next) return std::nullopt;
      const auto bits = static_cast<unsigned char>(next->front());
      result |= static_cast<std::size_t>(bits & 0x7FU) << (7 * i);
      if ((bits & 0x80U) == 0) return result <= UINT32_MAX ? std::optional(result) : std::nullopt;
    }
    return std::nullopt;
  }

  /// A number of eight bytes, or an atom.
  std::optional<std::uint64_t> take_number() noexcept {
    const auto bytes = take(sizeof(std::uint64_t));
    if (!bytes) return std::nullopt;
    std::uint64_t result = 0;
    std::memcpy(&result, bytes->data(), sizeof result);
    return be64toh(result);
  }

  std::string_view left() const noexcept { return left_; }

 private:
  static constexpr int most_of_size = 5;

  std::string_view left_;
};

}  // namespace troupe::network
