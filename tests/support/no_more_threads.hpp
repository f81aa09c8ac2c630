// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstddef>
#include <fstream>

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

/// While an object of this class lives, this process gets one or two further threads: the address space that is left takes so many of their
/// stacks.
class few_more_threads {
 public:
  few_more_threads() {
    constexpr rlim_t stack = rlim_t{256} << 20;
    ::pthread_getattr_default_np(&before_);
    pthread_attr_t all = before_;
    ::pthread_attr_setstacksize(&all, stack);
    ::pthread_setattr_default_np(&all);
    ::getrlimit(RLIMIT_AS, &limit_);
    std::ifstream sizes("/proc/self/statm");
    rlim_t pages = 0;
    sizes >> pages;
    const rlimit with_stacks{pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) + 5 * stack / 2, limit_.rlim_max};
    ::setrlimit(RLIMIT_AS, &with_stacks);
  }
  ~few_more_threads() {
    ::setrlimit(RLIMIT_AS, &limit_);
    ::pthread_setattr_default_np(&before_);
  }
  few_more_threads(const few_more_threads&) = delete;
  few_more_threads& operator=(const few_more_threads&) = delete;

 private:
  pthread_attr_t before_{};
  rlimit limit_{};
};

}  // namespace troupe::test
