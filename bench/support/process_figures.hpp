// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace troupe::bench {

/// What a process of this machine uses. Throws std::runtime_error if there is no such process.
struct process_figures {
  double cpu_seconds = 0;  // user and system time since the process started
  std::size_t threads = 0;
  std::size_t descriptors = 0;
  std::int64_t resident_kib = 0;
  std::int64_t peak_kib = 0;  // most resident memory since the process started, or since forget_peak()

  static process_figures of(pid_t process);
};

/// The memory of this process that is in RAM, in bytes, after unused memory of the allocator was given back.
double resident_bytes();

/// The peak of this process's resident memory in bytes, since its start or since forget_peak().
double peak_bytes();

/// The peak of this process's resident memory counts anew from now on.
void forget_peak();

}  // namespace troupe::bench
