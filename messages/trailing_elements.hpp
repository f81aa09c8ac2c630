// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/messages/trailing_elements_test.cpp
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

/// The elements of a tensor_piece may *trail* its message: they follow the message on its connection. So neither end copies the
/// elements into a buffer with the message. The sender writes them out of the tensor, and the receiver reads them into the
/// memory of their transfer. Only the two ends of one connection agree on this; the message is the same for the actors.
namespace troupe {

/// Bytes, and an object that keeps their memory.
struct trailing_bytes {
  std::span<const char> bytes;
  std::shared_ptr<const void> owner;
};

/// At the sender: takes the elements that trail the messages of one connection.
///   TE-1  elements trail a message only if the message is written into the buffer of this object, between begin_message() and
///         end_message() of one thread.
///   TE-2  elements trail at most one message before end_message().
class trailing_elements {
 public:
  /// The fewest and the most bytes that trail a message.
  static constexpr std::size_t least = std::size_t{16} << 10;
  static constexpr std::size_t most = std::size_t{256} << 10;

  /// `buffer`: takes the messages of the connection; lives as long as this object.
  explicit trailing_elements(const std::vector<char>& buffer) noexcept : buffer_(buffer) {}
  ~trailing_elements();
  trailing_elements(const trailing_elements&) = delete;
  trailing_elements& operator=(const trailing_elements&) = delete;

  /// Says that this thread writes a message next. `may_trail`: whether its elements may trail it.
  void begin_message(bool may_trail) noexcept;
  bool has_any() const noexcept { return !waiting_.bytes.empty(); }
  /// Ends the message. Returns the elements that trail it; nothing if none trail it.
  trailing_bytes end_message() noexcept;

  /// The object that takes `bytes` bytes of elements behind the message that this thread writes into `buffer`; null: none.
  static trailing_elements* taking(const std::vector<char>& buffer, std::size_t bytes) noexcept;
  /// Makes the elements trail the message that this thread has written. Pre: has_any() is false.
  void trail(trailing_bytes elements) noexcept;

 private:
  const std::vector<char>& buffer_;
  trailing_bytes waiting_;
};

/// At the receiver: where the elements go that trail a message.
struct trailing_place {
  std::uint64_t bytes = 0;        // how many bytes trail the message
  std::span<char> memory = {};    // for these bytes; empty if the piece is refused: its elements are dropped
  std::shared_ptr<void> owner;    // keeps the memory in which the bytes arrive
  std::uint64_t arrival = 0;      // number of the transfer's arrival
  const char* refusal = nullptr;  // why the piece is refused
};

/// Interface of what takes elements that trail messages.
class trailing_receiver {
 public:
  virtual ~trailing_receiver() = default;
  /// Says where the elements go that trail the message with these values. `values`: a tensor_piece as CAF has written it.
  /// Checks the sender that the piece names, as reading the message does. Returns nothing if no elements trail the message, or
  /// more than `trailing_elements::most` bytes. If there is no memory, the piece is refused.
  virtual std::optional<trailing_place> place_of_trailing(std::string_view values) const noexcept = 0;
};

/// Sets, until the end of the scope, where the elements are that trail the message that this thread reads. Null: none trail.
class reading_trailing {
 public:
  explicit reading_trailing(const trailing_place* where) noexcept;
  ~reading_trailing();
  reading_trailing(const reading_trailing&) = delete;
  reading_trailing& operator=(const reading_trailing&) = delete;

  static const trailing_place* current() noexcept;

 private:
  const trailing_place* before_;
};

}  // namespace troupe
