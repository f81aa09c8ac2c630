// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

namespace troupe::test {

/// From now on these system calls of this process, and of the processes that it starts, fail with `reason`, as on a kernel or a file
/// system without them. There is no way back, so a forked child calls this. Returns whether the kernel has agreed.
inline bool refuse_calls(std::initializer_list<long> numbers, int reason) {
  std::vector<sock_filter> steps{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offsetof(seccomp_data, nr)))};
  for (const long number : numbers) {
    steps.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(number), 0, 1));
    steps.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (static_cast<std::uint32_t>(reason) & SECCOMP_RET_DATA)));
  }
  steps.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  const sock_fprog program{static_cast<unsigned short>(steps.size()), steps.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

}  // namespace troupe::test
