// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <troupe/engine/cpu_workers.hpp>

namespace troupe::test {

/// Workers for tests. With a grain of 0 every function that was timed before is large.
class threads final : public engine::cpu_workers {
 public:
  explicit threads(std::size_t count, std::int64_t grain = 0) : engine::cpu_workers(count, grain) {
    for (std::size_t i = 0; i < count; ++i) threads_.emplace_back([this] { serve(); });
  }
  ~threads() override {
    post({});
    for (auto& each : threads_) each.join();
  }
  void post(std::function<void()> work) override {
    {
      const std::lock_guard lock(mutex_);
      queue_.push_back(std::move(work));
    }
    changed_.notify_all();
  }
  using engine::cpu_workers::measure_grain;

 private:
  void serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return !queue_.empty(); });
      if (!queue_.front()) return;
      const auto work = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      work();
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;
  std::vector<std::thread> threads_;
};

}  // namespace troupe::test
