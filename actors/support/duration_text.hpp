// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <string>

namespace troupe::support {

/// A time in milliseconds for a text: "12.345 ms".
inline std::string duration_text(std::int64_t ns) {
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%.3f ms", static_cast<double>(ns) / 1e6);
  return text.data();
}

}  // namespace troupe::support
