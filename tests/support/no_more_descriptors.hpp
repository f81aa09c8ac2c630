// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/resource.h>

namespace troupe::test {

/// While an object of this class lives, this process gets no more descriptors.
class no_more_descriptors {
 public:
  no_more_descriptors() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    auto few = before_;
    few.rlim_cur = 0;
    ::setrlimit(RLIMIT_NOFILE, &few);
  }
  ~no_more_descriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

}  // namespace troupe::test
