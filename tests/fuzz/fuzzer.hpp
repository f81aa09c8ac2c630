// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string_view>

/// What a fuzz target reads: an input, which may have any bytes and any length. An input that makes a target crash, leak, or trip a
/// sanitizer is a fault. Exceptions that readers throw for bad bytes are none.
namespace troupe::fuzz {

/// Each target defines this function; entry.cpp calls it.
void read_input(std::string_view bytes);

/// Takes a number below `of` from the front of an input. 0 if the input is empty.
inline std::size_t take_choice(std::string_view& bytes, std::size_t of) {
  if (bytes.empty()) return 0;
  const auto result = static_cast<unsigned char>(bytes.front()) % of;
  bytes.remove_prefix(1);
  return result;
}

}  // namespace troupe::fuzz
