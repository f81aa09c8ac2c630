// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <caf/byte.hpp>
#include <caf/span.hpp>

namespace google::protobuf {

class Descriptor;

}  // namespace google::protobuf

namespace troupe {

/// The deep fields of a type of messages: those whose values are messages that contain messages in turn.
class deep_fields {
 public:
  explicit deep_fields(const google::protobuf::Descriptor& type, std::uint64_t number = 0);
  /// The deep fields of the type of field `number`; null if that field is not deep.
  const deep_fields* of(std::uint64_t number) const noexcept;

 private:
  std::uint64_t number_;
  std::vector<deep_fields> all_;
};

/// True if each field of a protobuf message, and of the messages that are values of `deep` fields, ends within the message that
/// has the field. libprotobuf does not check this first. libprotobuf reserves memory for a string by the length that a nested
/// message claims (up to 50 MB), and only later finds that the message is shorter.
bool fields_are_within(caf::span<const caf::byte> message, const deep_fields& deep) noexcept;

/// How many outermost fields a protobuf message has; nothing if a field does not end within the message.
std::optional<std::size_t> fields_in(caf::span<const caf::byte> message) noexcept;

/// True if a protobuf message of this type, with its inner messages, has at most max_entries entries in each list of texts or
/// of messages, max_entries fields that the type does not know, and max_numbers bytes in lists of short numbers. libprotobuf
/// takes a hundred bytes of memory for an entry of two bytes. False if a field does not end within the message.
bool entries_are_few(caf::span<const caf::byte> message, const google::protobuf::Descriptor& type);

}  // namespace troupe
