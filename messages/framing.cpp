// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/messages/framing.hpp>

#include <cstdint>
#include <map>
#include <optional>

#include <google/protobuf/descriptor.h>

#include <troupe/messages/message_size.hpp>

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

struct field {
  std::uint64_t number = 0;
  bool is_counted = false;  // whether the value follows a length: texts, messages and packed lists do
  caf::span<const caf::byte> value;
};

// Moves `at` past the next field. Returns none if the field does not end within the message.
std::optional<field> take_field(const caf::byte*& at, const caf::byte* end) noexcept {
  std::uint64_t tag = 0;
  if (!take_varint(at, end, tag)) return std::nullopt;
  const auto kind = tag & 7;
  std::uint64_t bytes = 0;  // bytes of the field's value
  switch (kind) {
    case 0:
      if (!take_varint(at, end, bytes)) return std::nullopt;
      bytes = 0;
      break;
    case 1:
      bytes = 8;
      break;
    case 2:
      if (!take_varint(at, end, bytes)) return std::nullopt;
      break;
    case 5:
      bytes = 4;
      break;
    default:
      return std::nullopt;  // groups: no version of troupe sends any
  }
  if (bytes > static_cast<std::uint64_t>(end - at)) return std::nullopt;
  const field found{tag >> 3, kind == 2, {at, static_cast<std::size_t>(bytes)}};
  at += bytes;
  return found;
}

// Counts entries of lists, by field, numbers of all lists, and fields that the type does not know.
class entry_count {
 public:
  bool is_few(caf::span<const caf::byte> message, const google::protobuf::Descriptor& type) {
    const caf::byte* at = message.data();
    const caf::byte* end = at + message.size();
    while (at != end) {
      const auto next = take_field(at, end);
      if (!next) return true;  // libprotobuf stops here too, and refuses the message
      const auto* known = next->number > INT32_MAX ? nullptr : type.FindFieldByNumber(static_cast<int>(next->number));
      if (known == nullptr) {
        if (++unknown_ > max_entries) return false;
        continue;
      }
      if (known->is_repeated() && known->type() == google::protobuf::FieldDescriptor::TYPE_UINT64) {
        numbers_ += next->is_counted ? next->value.size() : 1;
        if (numbers_ > max_numbers) return false;
        continue;
      }
      if (!next->is_counted) continue;
      if (known->is_repeated() && ++entries_[known] > max_entries) return false;
      if (known->message_type() != nullptr && !is_few(next->value, *known->message_type())) return false;
    }
    return true;
  }

 private:
  std::map<const google::protobuf::FieldDescriptor*, std::size_t> entries_;
  std::size_t numbers_ = 0;  // of a byte or more that take eight bytes here
  std::size_t unknown_ = 0;
};

}  // namespace

bool fields_are_within(caf::span<const caf::byte> message) noexcept {
  const caf::byte* at = message.data();
  const caf::byte* end = at + message.size();
  while (at != end)
    if (!take_field(at, end)) return false;
  return true;
}

std::size_t fields_numbered(std::uint64_t number, caf::span<const caf::byte> message) noexcept {
  const caf::byte* at = message.data();
  const caf::byte* end = at + message.size();
  std::size_t result = 0;
  while (at != end) {
    const auto next = take_field(at, end);
    if (!next) break;
    if (next->number == number) ++result;
  }
  return result;
}

bool entries_are_few(caf::span<const caf::byte> message, const google::protobuf::Descriptor& type) {
  return entry_count().is_few(message, type);
}

}  // namespace troupe
