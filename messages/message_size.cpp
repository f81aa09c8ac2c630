// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/messages/message_size.hpp>

#include <atomic>

namespace troupe {

namespace {

std::atomic<std::uint64_t> longest{max_message_bytes};

}  // namespace

std::uint64_t longest_message() noexcept { return longest; }

void set_longest_message(std::uint64_t bytes) noexcept { longest = bytes; }

}  // namespace troupe
