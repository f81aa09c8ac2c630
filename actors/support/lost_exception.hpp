// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdio>

namespace troupe::support {

/// Says on stderr that nobody gets the exception.
inline void report_lost_exception(const char* where, const char* text) noexcept {
  std::fprintf(stderr, "troupe: %s threw: %s\n", where, text);
}

}  // namespace troupe::support
