// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <csignal>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>

#include <sys/wait.h>
#include <unistd.h>

namespace troupe::test {

/// What a process of its own writes to stderr while it runs `work`, and the signal that ends it; 0: none.
inline std::pair<std::string, int> stderr_of_process(const std::function<void()>& work) {
  int ends[2];
  if (::pipe(ends) != 0) throw std::runtime_error("no pipe");
  const auto child = ::fork();
  if (child == 0) {
    ::dup2(ends[1], STDERR_FILENO);
    std::signal(SIGABRT, SIG_DFL);
    try {
      work();
    } catch (...) {
      ::_exit(1);
    }
    ::_exit(0);
  }
  ::close(ends[1]);
  std::string text;
  for (char byte = 0; ::read(ends[0], &byte, 1) == 1;) text += byte;
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  return {text, WIFSIGNALED(status) ? WTERMSIG(status) : 0};
}

}  // namespace troupe::test
