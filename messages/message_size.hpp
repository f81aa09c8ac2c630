// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/messages/inspect_test.cpp, tests/messages/hostile_test.cpp
#pragma once

#include <cstdint>

/// The largest sizes of messages. CAF gives the length of a message 32 bits.
namespace troupe {

/// The largest size of the tensors of one struct, in bytes. The header takes the rest of the message.
inline constexpr std::uint64_t max_payload_bytes = 0xf0000000;
/// The largest size of all structs of one CAF message, in bytes. A message of a user's own actor may hold several structs.
/// The bytes that follow the structs take the rest of what 32 bits allow.
inline constexpr std::uint64_t max_message_bytes = 0xff000000;

/// The current limit: max_message_bytes, or what a test has set.
std::uint64_t longest_message() noexcept;
/// For tests: sets a shorter length for all threads.
void set_longest_message(std::uint64_t bytes) noexcept;

}  // namespace troupe
