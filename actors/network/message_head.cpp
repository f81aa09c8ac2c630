// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/network/message_head.hpp>

#include <endian.h>
#include <algorithm>
#include <cstring>

namespace troupe::network {

namespace {

// Where the fields begin. Numbers are big-endian.
constexpr std::size_t operation_at = 0;
constexpr std::size_t note_at = 1;
constexpr std::size_t flags_at = 3;
constexpr std::size_t payload_at = 4;
constexpr std::size_t message_at = 8;
constexpr std::size_t source_at = 16;
constexpr std::size_t target_at = 24;

}  // namespace

message_head message_head::read(const char* from) noexcept {
  message_head result;
  result.operation = static_cast<std::uint8_t>(from[operation_at]);
  result.note = static_cast<std::uint8_t>(from[note_at]);
  result.flags = static_cast<std::uint8_t>(from[flags_at]);
  std::memcpy(&result.payload, from + payload_at, sizeof result.payload);
  std::memcpy(&result.message, from + message_at, sizeof result.message);
  std::memcpy(&result.source, from + source_at, sizeof result.source);
  std::memcpy(&result.target, from + target_at, sizeof result.target);
  result.payload = be32toh(result.payload);
  result.message = be64toh(result.message);
  result.source = be64toh(result.source);
  result.target = be64toh(result.target);
  return result;
}

void message_head::write(char* to) const noexcept {
  std::fill_n(to, bytes, '\0');
  to[operation_at] = static_cast<char>(operation);
  set_note(to, note);
  to[flags_at] = static_cast<char>(flags);
  const auto payload_bytes = htobe32(payload);
  const auto message_bytes = htobe64(message);
  const auto source_bytes = htobe64(source);
  const auto target_bytes = htobe64(target);
  std::memcpy(to + payload_at, &payload_bytes, sizeof payload_bytes);
  std::memcpy(to + message_at, &message_bytes, sizeof message_bytes);
  std::memcpy(to + source_at, &source_bytes, sizeof source_bytes);
  std::memcpy(to + target_at, &target_bytes, sizeof target_bytes);
}

void message_head::set_note(char* of, std::uint8_t note) noexcept { of[note_at] = static_cast<char>(note); }

}  // namespace troupe::network
