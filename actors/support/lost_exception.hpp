// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdio>

namespace troupe::support {

/// Writes to stderr an exception that no caller gets.
inline void report_lost_exception(const char* where, const char* text) noexcept {
  std::fprintf(stderr, "troupe: %s threw: %s\n", where, text);
}

}  // namespace troupe::support
