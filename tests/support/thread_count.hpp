// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <set>
#include <string>

namespace troupe::test {

/// The number of threads of a process of this machine; without an argument, of this process.
inline std::size_t threads_of(pid_t process = ::getpid()) {
  const std::filesystem::directory_iterator all("/proc/" + std::to_string(process) + "/task");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

/// The threads of this process that were not there when the object was made. (The number of all threads also counts threads that have
/// nothing left to do and still end.)
class new_threads {
 public:
  std::size_t count() const {
    const auto now = ids();
    return static_cast<std::size_t>(
      std::count_if(now.begin(), now.end(), [&](const auto& each) { return !before_.contains(each); }));
  }

 private:
  static std::set<std::string> ids() {
    std::set<std::string> result;
    for (const auto& each : std::filesystem::directory_iterator("/proc/self/task")) result.insert(each.path().filename());
    return result;
  }
  const std::set<std::string> before_ = ids();
};

}  // namespace troupe::test
