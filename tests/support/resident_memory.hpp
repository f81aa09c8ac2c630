// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <string>

namespace troupe::test {

/// The resident memory of this process, in KiB.
inline std::int64_t resident_kib() {
  std::ifstream status("/proc/self/statm");
  std::int64_t total = 0;
  std::int64_t resident = 0;
  status >> total >> resident;
  return resident * ::sysconf(_SC_PAGESIZE) / 1024;
}

/// The most that was resident of this process since the last peak was forgotten (/proc/self/clear_refs), in KiB.
inline std::int64_t peak_kib() {
  std::ifstream status("/proc/self/status");
  std::int64_t peak = 0;
  for (std::string word; status >> word && word != "VmHWM:";) {
  }
  status >> peak;
  return peak;
}

}  // namespace troupe::test
