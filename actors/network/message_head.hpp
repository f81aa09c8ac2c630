// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>

#include <caf/io/basp/header.hpp>

namespace troupe::network {

/// The fields of a BASP header that a connection looks at, read from the bytes of a message. A BASP header has two bytes without a
/// meaning, and CAF ignores them. troupe uses the first of the two, `note`. So a connection to a node on CAF's own network works
/// too: CAF sends a note without bits.
struct message_head {
  static constexpr std::size_t bytes = caf::io::basp::header_size;
  /// A message with this operation is a fragment: the next bytes of the payload of another message. CAF does not know it, so
  /// fragments are sent only to a node that has said that it reads them.
  static constexpr std::uint8_t fragment = 0xF0;
  /// Bit of `note`: the end that sent this message reads fragments.
  static constexpr std::uint8_t reads_fragments = 1;
  /// Bit of `note`: the payload begins with the bytes of the fragments that came before this message.
  static constexpr std::uint8_t follows_fragments = 2;

  std::uint8_t operation = 0;
  std::uint8_t note = 0;
  std::uint32_t payload = 0;  // bytes
  std::uint64_t message = 0;  // CAF's number of the message; a bit of it says that the message is an answer
  std::uint64_t source = 0;   // id of the sending actor
  std::uint64_t target = 0;   // id of the receiving actor; 0 if the message is for CAF's broker
  std::uint8_t flags = 0;     // CAF's

  /// Reads the `bytes` bytes at `from`.
  static message_head read(const char* from) noexcept;
  /// Writes `bytes` bytes at `to`. Fields of a BASP header that this struct does not have become 0.
  void write(char* to) const noexcept;
  /// Replaces the note of the message whose header begins at `of`.
  static void set_note(char* of, std::uint8_t note) noexcept;
};

}  // namespace troupe::network
