// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/messages/framing.hpp>

#include <cstdint>

namespace troupe {

namespace {

// Reads a number in base 128, the lowest 7 bits first. Returns false if the number does not end within 10 bytes.
bool take_varint(const caf::byte*& at, const caf::byte* end, std::uint64_t& value) noexcept {
  value = 0;
  for (unsigned shift = 0; shift < 70 && at != end; shift += 7) {
    auto bits = static_cast<std::uint64_t>(*at++);
    value |= shift < 64 ? (bits & 0x7f) << shift : 0;
    if (bits < 0x80) return true;
  }
  return false;
}

}  // namespace

bool fields_are_within(caf::span<const caf::byte> message) noexcept {
  const caf::byte* at = message.data();
  const caf::byte* end = at + message.size();
  while (at != end) {
    std::uint64_t tag = 0;
    if (!take_varint(at, end, tag)) return false;
    std::uint64_t bytes = 0;  // bytes of the field's value
    switch (tag & 7) {
      case 0:
        if (!take_varint(at, end, bytes)) return false;
        bytes = 0;
        break;
      case 1:
        bytes = 8;
        break;
      case 2:
        if (!take_varint(at, end, bytes)) return false;
        break;
      case 5:
        bytes = 4;
        break;
      default:
        return false;  // groups: no version of troupe sends any
    }
    if (bytes > static_cast<std::uint64_t>(end - at)) return false;
    at += bytes;
  }
  return true;
}

}  // namespace troupe
