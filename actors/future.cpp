// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/future.hpp>

#include <cstdio>

namespace troupe {

blocking_observer*& blocking_observer::current() {
  thread_local blocking_observer* observer = nullptr;
  return observer;
}

namespace detail {

void report_lost_exception(const char* where, const char* text) noexcept {
  std::fprintf(stderr, "troupe: %s threw: %s\n", where, text);
}

}  // namespace detail

}  // namespace troupe
