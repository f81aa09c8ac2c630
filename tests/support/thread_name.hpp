// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <pthread.h>
#include <array>
#include <string>

namespace troupe::test {

/// The name that the calling thread has in the process list.
inline std::string thread_name() {
  std::array<char, 16> name{};  // the longest that Linux has
  ::pthread_getname_np(::pthread_self(), name.data(), name.size());
  return name.data();
}

}  // namespace troupe::test
