// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

/// How large messages can be: CAF gives the length of one 32 bits.
namespace troupe {

/// Of the tensors of one struct; the rest is for headers.
inline constexpr std::uint64_t max_payload_bytes = 0xf0000000;
/// Of a CAF message, all that is in it: a message of an own actor may hold several structs. The rest is for what follows them.
inline constexpr std::uint64_t max_message_bytes = 0xff000000;

/// Throws troupe::error(unsupported_tensor), the text beginning with `what`, if the tensors, wherever they are, have more bytes
/// together than one struct may have.
void check_sum_travels(const std::vector<at::Tensor>& tensors, std::string_view what);

/// What holds now: max_message_bytes, or what a test set.
std::uint64_t longest_message() noexcept;
/// For tests: sets a shorter length for all threads.
void set_longest_message(std::uint64_t bytes) noexcept;

}  // namespace troupe
