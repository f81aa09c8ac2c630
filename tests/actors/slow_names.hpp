// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>

namespace troupe::test {

/// Host names that begin with "slow" stand for 127.0.0.1, and their look-up blocks while an object of this class lives. Only in test
/// programs with dialer_test.cpp, which replaces getaddrinfo().
class slow_names {
 public:
  slow_names() { set(true); }
  ~slow_names() { set(false); }
  slow_names(const slow_names&) = delete;
  slow_names& operator=(const slow_names&) = delete;

  /// The number of look-ups that block now.
  static int blocked() {
    std::lock_guard lock(mutex);
    return waiting;
  }
  /// The number of look-ups that have begun so far.
  static int begun() {
    std::lock_guard lock(mutex);
    return all;
  }
  static bool are_meant_by(const std::string& host) { return host.starts_with("slow"); }
  /// To be called by a look-up.
  static void wait() {
    std::unique_lock lock(mutex);
    ++all;
    ++waiting;
    changed.wait(lock, [] { return !block; });
    --waiting;
  }

 private:
  static void set(bool to) {
    {
      std::lock_guard lock(mutex);
      block = to;
    }
    changed.notify_all();
  }

  static inline std::mutex mutex;
  static inline std::condition_variable changed;
  static inline bool block = false;
  static inline int waiting = 0;
  static inline int all = 0;
};

}  // namespace troupe::test
