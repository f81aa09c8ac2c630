// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <pthread.h>

#include <cstddef>

namespace troupe::test {

/// While an object of this class lives, this process gets no further thread. Each new thread asks for a stack larger than the
/// address space. The system refuses such a thread with the same error as a thread beyond the limit on threads.
class no_more_threads {
 public:
  no_more_threads() {
    ::pthread_getattr_default_np(&before_);
    pthread_attr_t all = before_;
    ::pthread_attr_setstacksize(&all, std::size_t{1} << 47);
    ::pthread_setattr_default_np(&all);
  }
  ~no_more_threads() { ::pthread_setattr_default_np(&before_); }
  no_more_threads(const no_more_threads&) = delete;
  no_more_threads& operator=(const no_more_threads&) = delete;

 private:
  pthread_attr_t before_{};
};

}  // namespace troupe::test
