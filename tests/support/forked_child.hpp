// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <functional>

namespace troupe::test {

/// Runs `what` in a forked child. Returns the exit status of the child: the result of `what`, or 98 if `what` threw. Returns -1
/// if a signal ended the child.
inline int status_of_child(const std::function<int()>& what) {
  const pid_t child = fork();
  if (child == 0) {
    int status = 99;
    try {
      status = what();
    } catch (...) {
      status = 98;
    }
    _exit(status);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace troupe::test
