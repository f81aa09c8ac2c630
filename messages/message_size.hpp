// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/messages/inspect_test.cpp, tests/messages/hostile_test.cpp
#pragma once

#include <cstddef>
#include <cstdint>

/// The largest sizes of messages. A node that sends a larger message gets an error (see check_can_travel), and a node that
/// receives a larger message refuses it. The length of a CAF message has 32 bits.
namespace troupe {

/// The largest size of the tensors of one struct, in bytes. The header takes the rest of the message.
inline constexpr std::uint64_t max_payload_bytes = 0xf0000000;
/// The largest size of all structs of one CAF message, in bytes. A message of a user's own actor may hold several structs. The
/// bytes that follow the structs take the rest of the length that 32 bits allow.
inline constexpr std::uint64_t max_message_bytes = 0xff000000;

/// The largest header of a struct. The news of 65,536 members with the longest names of hosts take 23 MiB.
inline constexpr std::size_t max_header_bytes = std::size_t{32} << 20;
/// The most entries of a list of nodes, of passes, of texts or of structs in a header. A node knows at most half as many
/// members.
inline constexpr std::size_t max_entries = 131'072;
/// The most bytes of all lists of numbers of variable length in a header, such as lists of object numbers.
inline constexpr std::size_t max_numbers = std::size_t{4} << 20;
/// The most devices of a node: the CPU, and an accelerator for each index that libtorch has.
inline constexpr std::size_t max_devices = 129;
/// The most tensors of a message, and the most bytes of their shapes in the header.
inline constexpr std::size_t max_tensors = 65'536;
inline constexpr std::size_t max_shape_bytes = std::size_t{8} << 20;
/// The most attributes of a message, the longest name of an attribute, and the most bytes of all their names and texts in the
/// header.
inline constexpr std::size_t max_attributes = 65'536;
inline constexpr std::size_t max_attribute_name_bytes = 1024;
inline constexpr std::size_t max_attribute_bytes = std::size_t{16} << 20;

/// Returns the current limit of a message: max_message_bytes, or the limit that a test has set.
std::uint64_t longest_message() noexcept;
/// For tests: sets a lower limit for all threads.
void set_longest_message(std::uint64_t bytes) noexcept;

}  // namespace troupe
