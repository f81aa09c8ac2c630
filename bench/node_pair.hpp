// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <troupe/troupe.hpp>

#include "other_process.hpp"
#include "process_figures.hpp"
#include "scratch_folder.hpp"
#include "suite_parts.hpp"

namespace troupe::bench {

/// How the two nodes of a pair are started. All else is as the code has it.
struct pair_settings {
  carrier by = carrier::shared_memory;
  std::chrono::microseconds short_work = settings().short_work;
  std::size_t workers = settings().workers;
  std::function<void(caf::actor_system_config&)> configure{};
};

/// This process's node "a", and the node "b" of another process. To be made before this process has other threads. Functions of b:
///   add       the sum of two tensors                    echo      the tensors of the call
///   spin      computes for `us` microseconds            compute   computes for 50 ms
///   resident  `bytes`, as resident_bytes()              throws    the tensor; its function in backward throws
///   peak      `bytes`: the most since "forget_peak"
/// b has the module type "empty", without parameters: what libtorch takes for tensors is not measured.
class node_pair {
 public:
  explicit node_pair(pair_settings how);

  node& here() { return *here_; }
  const peer& to() const { return *to_; }
  double resident_there() const { return get<double>(to_->call("resident").get().values, "bytes"); }

 private:
  scratch_folder kits_;
  other_process server_;
  std::optional<node> here_;
  std::optional<peer> to_;
};

/// Computes for about so long.
void compute(std::chrono::microseconds for_long);

/// The microseconds since `begin`.
inline double microseconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
}

/// Runs `run` again and again, `warm_up_of(runs)` times before it counts, and returns the microseconds of each run that counts.
template <class Run>
std::vector<double> times_of(int runs, Run run) {
  std::vector<double> taken;
  for (int i = -warm_up_of(runs); i < runs; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    run();
    if (i >= 0) taken.push_back(microseconds_since(begin));
  }
  return taken;
}

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

/// Opens a context and runs `within` in it. Contexts of one thread do not nest, so another thread opens the context and ends.
template <class Run>
std::unique_ptr<context> open_context(node& here, Run within) {
  std::unique_ptr<context> result;
  on_own_thread([&] {
    result = std::make_unique<context>(here);
    within();
  });
  return result;
}

}  // namespace troupe::bench
