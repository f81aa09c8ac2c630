// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <iterator>
#include <string>

namespace troupe::test {

/// How many threads a process of this machine has, this one unless told otherwise.
inline std::size_t threads_of(pid_t process = ::getpid()) {
  const std::filesystem::directory_iterator all("/proc/" + std::to_string(process) + "/task");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

}  // namespace troupe::test
