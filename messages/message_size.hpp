// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

/// How large messages can be: CAF gives the length of one 32 bits.
namespace troupe {

/// The tensors of one struct have at most so many bytes; headers take the rest of the message.
inline constexpr std::uint64_t max_payload_bytes = 0xf0000000;
/// The structs of one CAF message have at most so many bytes together: a message of an own actor may hold several. What follows
/// them takes the rest of what a length of 32 bits can say.
inline constexpr std::uint64_t max_message_bytes = 0xff000000;

/// What holds now: max_message_bytes, or what a test set.
std::uint64_t longest_message() noexcept;
/// For tests: sets a shorter length for all threads.
void set_longest_message(std::uint64_t bytes) noexcept;

}  // namespace troupe
