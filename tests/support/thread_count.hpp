// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <iterator>
#include <string>

namespace troupe::test {

/// The number of threads of a process of this machine; without an argument, of this process.
inline std::size_t threads_of(pid_t process = ::getpid()) {
  const std::filesystem::directory_iterator all("/proc/" + std::to_string(process) + "/task");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

}  // namespace troupe::test
