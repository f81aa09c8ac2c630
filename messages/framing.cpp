// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/messages/framing.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>

#include <google/protobuf/descriptor.h>
#include <google/protobuf/wire_format_lite.h>

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

constexpr unsigned counted = 2;  // kind of a field whose value follows a length: texts, messages and packed lists

struct field {
  std::uint64_t number = 0;
  unsigned kind = 0;
  caf::span<const caf::byte> value;
};

// Moves `at` past the next field. Returns none if the field does not end within the message.
std::optional<field> take_field(const caf::byte*& at, const caf::byte* end) noexcept {
  std::uint64_t tag = 0;
  if (!take_varint(at, end, tag)) return std::nullopt;
  const auto kind = static_cast<unsigned>(tag & 7);
  std::uint64_t bytes = 0;  // bytes of the field's value
  switch (kind) {
    case 0:
      if (!take_varint(at, end, bytes)) return std::nullopt;
      bytes = 0;
      break;
    case 1:
      bytes = 8;
      break;
    case counted:
      if (!take_varint(at, end, bytes)) return std::nullopt;
      break;
    case 5:
      bytes = 4;
      break;
    default:
      return std::nullopt;  // groups: no version of troupe sends any
  }
  if (bytes > static_cast<std::uint64_t>(end - at)) return std::nullopt;
  const field found{tag >> 3, kind, {at, static_cast<std::size_t>(bytes)}};
  at += bytes;
  return found;
}

// Returns the kind of a field that has one value of this type.
unsigned kind_of(google::protobuf::FieldDescriptor::Type type) noexcept {
  using format = google::protobuf::internal::WireFormatLite;
  return format::WireTypeForFieldType(static_cast<format::FieldType>(type));
}

// Counts the entries of each list, the numbers in all lists, and the unknown fields. A field whose kind does not belong to its
// number counts as unknown, because libprotobuf stores it as unknown.
class entry_count {
 public:
  bool is_few(caf::span<const caf::byte> message, const google::protobuf::Descriptor& type) {
    const caf::byte* at = message.data();
    const caf::byte* end = at + message.size();
    while (at != end) {
      const auto next = take_field(at, end);
      if (!next) return false;
      const auto* known = next->number > INT32_MAX ? nullptr : type.FindFieldByNumber(static_cast<int>(next->number));
      const bool is_list = known != nullptr && known->is_packable() && next->kind == counted;
      if (known == nullptr || (next->kind != kind_of(known->type()) && !is_list)) {
        if (++unknown_ > max_entries) return false;
        continue;
      }
      if (known->is_repeated() && kind_of(known->type()) == 0) {
        numbers_ += is_list ? next->value.size() : 1;
        if (numbers_ > max_numbers) return false;
        continue;
      }
      if (next->kind != counted || is_list) continue;
      if (known->is_repeated() && ++entries_[known] > max_entries) return false;
      if (known->message_type() != nullptr && !is_few(next->value, *known->message_type())) return false;
    }
    return true;
  }

 private:
  std::map<const google::protobuf::FieldDescriptor*, std::size_t> entries_;
  std::size_t numbers_ = 0;  // at least the count of numbers: each takes a byte or more in the message, and eight in memory
  std::size_t unknown_ = 0;
};

}  // namespace

deep_fields::deep_fields(const google::protobuf::Descriptor& type, std::uint64_t number) : number_(number) {
  for (int i = 0; i < type.field_count(); ++i) {
    const auto* inner = type.field(i)->message_type();
    bool is_deep = false;
    for (int j = 0; inner != nullptr && j < inner->field_count(); ++j) is_deep |= inner->field(j)->message_type() != nullptr;
    if (is_deep) all_.emplace_back(*inner, static_cast<std::uint64_t>(type.field(i)->number()));
  }
}

const deep_fields* deep_fields::of(std::uint64_t number) const noexcept {
  const auto found = std::find_if(all_.begin(), all_.end(), [=](const deep_fields& each) { return each.number_ == number; });
  return found == all_.end() ? nullptr : &*found;
}

bool fields_are_within(caf::span<const caf::byte> message, const deep_fields& deep) noexcept {
  const caf::byte* at = message.data();
  const caf::byte* end = at + message.size();
  while (at != end) {
    const auto next = take_field(at, end);
    if (!next) return false;
    const auto* inner = next->kind == counted ? deep.of(next->number) : nullptr;
    if (inner != nullptr && !fields_are_within(next->value, *inner)) return false;
  }
  return true;
}

std::optional<std::size_t> fields_in(caf::span<const caf::byte> message) noexcept {
  const caf::byte* at = message.data();
  const caf::byte* end = at + message.size();
  std::size_t result = 0;
  for (; at != end; ++result)
    if (!take_field(at, end)) return std::nullopt;
  return result;
}

bool entries_are_few(caf::span<const caf::byte> message, const google::protobuf::Descriptor& type) {
  return entry_count().is_few(message, type);
}

}  // namespace troupe
