// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <pthread.h>
#include <array>
#include <filesystem>
#include <fstream>
#include <string>

namespace troupe::test {

/// The name that the calling thread has in the process list.
inline std::string thread_name() {
  std::array<char, 16> name{};  // the longest that Linux has
  ::pthread_getname_np(::pthread_self(), name.data(), name.size());
  return name.data();
}

/// How many threads of this process have the name.
inline int threads_named(const std::string& name) {
  int count = 0;
  for (const auto& each : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream file(each.path() / "comm");
    std::string found;
    if (std::getline(file, found) && found == name) ++count;
  }
  return count;
}

/// How often threads of this process with the name have given their core up, since they began.
inline long times_that_threads_paused(const std::string& name) {
  long count = 0;
  for (const auto& each : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream file(each.path() / "status");
    bool is_one = false;
    for (std::string key, value; file >> key && std::getline(file >> std::ws, value);) {
      if (key == "Name:") is_one = value == name;
      if (is_one && key == "voluntary_ctxt_switches:") count += std::stol(value);
    }
  }
  return count;
}

}  // namespace troupe::test
