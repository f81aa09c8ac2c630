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

/// Lists the deep fields of a protobuf message type. A field is deep if its value is a message whose type has a field with a
/// message.
class deep_fields {
 public:
  explicit deep_fields(const google::protobuf::Descriptor& type, std::uint64_t number = 0);
  /// Returns the deep fields of the type of field `number`; null if that field is not deep.
  const deep_fields* of(std::uint64_t number) const noexcept;

 private:
  std::uint64_t number_;
  std::vector<deep_fields> all_;
};

/// True if each field of a protobuf message, and of the messages that are values of `deep` fields, ends within the message that
/// has the field. libprotobuf does not check this first. libprotobuf reserves memory for a string by the length that a nested
/// message claims (up to 50 MB). Only later libprotobuf finds that the message is shorter.
bool fields_are_within(caf::span<const caf::byte> message, const deep_fields& deep) noexcept;

/// Returns how many outermost fields a protobuf message has; none if a field does not end within the message.
std::optional<std::size_t> fields_in(caf::span<const caf::byte> message) noexcept;

/// True if a protobuf message of this type, inner messages included, keeps three limits: max_entries entries in each list of
/// texts or of messages, max_entries fields that the type does not know, and max_numbers bytes in lists of numbers of variable
/// length. False too if a field does not end within the message. The limits are needed because libprotobuf takes a hundred
/// bytes of memory for an entry of two bytes.
bool entries_are_few(caf::span<const caf::byte> message, const google::protobuf::Descriptor& type);

}  // namespace troupe
