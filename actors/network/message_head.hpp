// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/network/message_head_test.cpp, tests/actors/network/message_outline_test.cpp
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include <boost/endian/conversion.hpp>
#include <caf/io/basp/header.hpp>

namespace troupe::network {

/// The fields of a header of BASP (CAF's protocol between nodes) that a connection looks at. A BASP header has two bytes
/// without a meaning, and CAF ignores them. troupe uses the first of the two as `note`. CAF's own network sends the note 0, so
/// connections to such a network work too.
struct message_head {
  static constexpr std::size_t bytes = caf::io::basp::header_size;
  /// A message with this operation is a fragment: it carries the next bytes of the payload of another message. CAF does not
  /// know this operation, so fragments go only to a node that has said that it reads fragments.
  static constexpr std::uint8_t fragment = 0xF0;
  /// Bit of `note`: the end that sent this message reads fragments.
  static constexpr std::uint8_t reads_fragments = 1;
  /// Bit of `note`: the payload begins with the bytes of the fragments that came before this message.
  static constexpr std::uint8_t follows_fragments = 2;
  /// Bit of `note`: the end that sent this message reads elements that trail their message (messages/trailing_elements.hpp).
  static constexpr std::uint8_t reads_trailing = 4;
  /// Bit of `note`: elements trail the payload. The payload says how many bytes.
  static constexpr std::uint8_t has_trailing = 8;

  std::uint8_t operation = 0;
  std::uint8_t note = 0;
  std::uint32_t payload = 0;  // size of the payload in bytes
  std::uint64_t message = 0;  // CAF's number of the message; one of its bits says that the message is an answer
  std::uint64_t source = 0;   // id of the sending actor
  std::uint64_t target = 0;   // id of the receiving actor; 0 if the message is for CAF's broker
  std::uint8_t flags = 0;     // flags of CAF

  /// Reads a header from the `bytes` bytes at `from`.
  static message_head read(const char* from) noexcept;
  /// Writes a header, `bytes` bytes, to `to`. Fields of a BASP header that this struct does not have become 0.
  void write(char* to) const noexcept;
  /// Replaces the note of the message whose header begins at `of`.
  static void set_note(char* of, std::uint8_t note) noexcept;
};

/// Reads values that CAF has written. Each function takes a value from the front of the bytes that are left. It returns nothing
/// if too few bytes are left.
class front_reader {
 public:
  explicit front_reader(std::string_view from) noexcept : left_(from) {}

  std::optional<std::string_view> take(std::size_t bytes) noexcept {
    if (left_.size() < bytes) return std::nullopt;
    const auto result = left_.substr(0, bytes);
    left_.remove_prefix(bytes);
    return result;
  }

  /// Takes a size as CAF writes it: seven bits in each byte, the lowest bits first. The eighth bit says that another byte
  /// follows. Returns nothing for a size of more than five bytes or 32 bits, because nothing of such a size fits into a
  /// message.
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

  /// Takes a number of eight bytes, or an atom.
  std::optional<std::uint64_t> take_number() noexcept {
    const auto bytes = take(sizeof(std::uint64_t));
    if (!bytes) return std::nullopt;
    return boost::endian::load_big_u64(reinterpret_cast<const unsigned char*>(bytes->data()));
  }

  std::string_view left() const noexcept { return left_; }

 private:
  static constexpr int most_of_size = 5;

  std::string_view left_;
};

/// The beginning of a message to an actor: the names of its types, and its first value.
struct message_outline {
  /// The size of a node's id as CAF writes it: the kind of the id, the number of the process, and the host.
  static constexpr std::size_t node_bytes = 32;
  /// The characters with which CAF begins each list of types.
  static constexpr std::string_view begin_of_types = "@<>";

  std::string_view types;   // as CAF names the types of the values: "@<>+@atom+troupe.call"
  std::string_view values;  // the bytes that follow the types
  std::uint64_t first = 0;  // the first value, if it is an atom

  bool begins_with_atom() const noexcept;
};

/// Reads the types and the first value of a message, which may be within another message. Returns nothing if the bytes are not
/// as CAF writes them: for example if a name in the list of types is empty.
std::optional<message_outline> content_of(std::string_view message);

/// As content_of(), for a payload. `is_routed`: the payload begins with the sending node and the receiving node. Returns
/// nothing also if the message has to pass through further actors; nodes send no such message.
std::optional<message_outline> outline_of(std::string_view payload, bool is_routed);

}  // namespace troupe::network
