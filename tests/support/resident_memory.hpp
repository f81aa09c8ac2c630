// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <unistd.h>

#include <cstdint>
#include <fstream>

namespace troupe::test {

/// The resident memory of this process, in KiB.
inline std::int64_t resident_kib() {
  std::ifstream status("/proc/self/statm");
  std::int64_t total = 0;
  std::int64_t resident = 0;
  status >> total >> resident;
  return resident * ::sysconf(_SC_PAGESIZE) / 1024;
}

}  // namespace troupe::test
