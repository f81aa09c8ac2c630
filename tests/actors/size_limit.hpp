// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <csignal>

#include <sys/resource.h>

namespace troupe::test {

/// While an object of this class lives, no file of this process can grow beyond `bytes`, as on a full disk. SIGXFSZ is ignored,
/// because that signal would end the process.
class size_limit {
 public:
  explicit size_limit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    rlimit limited{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limited);
  }
  ~size_limit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  size_limit(const size_limit&) = delete;
  size_limit& operator=(const size_limit&) = delete;

 private:
  void (*handler_)(int);
  rlimit before_{};
};

}  // namespace troupe::test
