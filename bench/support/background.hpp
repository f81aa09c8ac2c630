// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <thread>
#include <utility>

namespace troupe::bench {

/// A thread that does one step after another until the object ends. An exception ends the thread; check() throws it.
class background {
 public:
  explicit background(std::function<void()> step) : thread_([this, step = std::move(step)] { run(step); }) {}
  ~background() {
    over_ = true;
    thread_.join();
  }
  background(const background&) = delete;
  background& operator=(const background&) = delete;

  void check() const {
    if (failed_) std::rethrow_exception(failure_);
  }

 private:
  void run(const std::function<void()>& step) {
    try {
      while (!over_) step();
    } catch (...) {
      failure_ = std::current_exception();
      failed_ = true;
    }
  }

  std::atomic<bool> over_{false};
  std::atomic<bool> failed_{false};
  std::exception_ptr failure_;  // to be read after failed_
  std::thread thread_;
};

/// Runs `work` on a thread of its own and waits for the end. Throws what `work` throws.
inline void on_own_thread(const std::function<void()>& work) {
  std::exception_ptr failure;
  std::thread([&] {
    try {
      work();
    } catch (...) {
      failure = std::current_exception();
    }
  }).join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace troupe::bench
