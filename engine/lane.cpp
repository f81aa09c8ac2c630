// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/engine/lane.hpp>

#include <chrono>
#include <thread>

namespace troupe::engine {

namespace {

// How long serve() waits for another task. Often a pass adds its next function sooner than a sleeping worker could wake up.
constexpr std::chrono::microseconds patience{50};

thread_local lane* served_here = nullptr;
thread_local std::size_t waits_here = 0;  // how many tasks of this thread are in serve_until()
thread_local lane_task_ptr promised_here;

}  // namespace

struct lane::wait_here {
  wait_here() noexcept { ++waits_here; }
  ~wait_here() { --waits_here; }
  wait_here(const wait_here&) = delete;
  wait_here& operator=(const wait_here&) = delete;
};

lane* lane::of_this_thread() noexcept { return served_here; }

void lane::serve_on_this_thread(lane* which) noexcept { served_here = which; }

void lane::add(lane_task_ptr next) {
  bool call = false;
  {
    const checked_lock lock(mutex_);
    queue_.push(std::move(next));
    waiting_.store(queue_.size(), std::memory_order_relaxed);
    call = serving_ < workers_;
    serving_ += call ? 1 : 0;
    rung_.notify_one();
  }
  if (!call) return;
  try {
    post_({shared_from_this()});
  } catch (...) {
    const checked_lock lock(mutex_);
    --serving_;  // the next add() posts again
    throw;
  }
}

bool lane::promises(const lane_task_ptr& next) {
  if (served_here != this || waits_here > 0 || promised_here) return false;
  const checked_lock lock(mutex_);
  if (queue_.size() > 1) return false;
  promised_here = next;
  return true;
}

bool lane::run_one() {
  auto next = std::exchange(promised_here, nullptr);
  if (!next || !next->claim()) {
    const checked_lock lock(mutex_);
    next = queue_.claim_next();
    waiting_.store(queue_.size(), std::memory_order_relaxed);
  }
  if (next) next->run();
  return next != nullptr;
}

bool lane::more_soon() const {
  using clock = std::chrono::steady_clock;
  const auto until = clock::now() + patience;
  while (waiting_.load(std::memory_order_relaxed) == 0) {
    if (clock::now() > until) return false;
    std::this_thread::yield();  // a thread of the pass may need this core
  }
  return true;
}

void lane::serve() {
  serve_on_this_thread(this);
  for (;;) {
    while (run_one()) {
    }
    if (more_soon()) continue;
    const checked_lock lock(mutex_);
    if (queue_.size() > 0) continue;
    --serving_;
    break;
  }
  serve_on_this_thread(nullptr);
}

void lane::serve_until(const std::function<bool()>& done) {
  const wait_here waits;
  while (!done()) {
    if (run_one()) continue;
    checked_unique_lock lock(mutex_);
    while (queue_.size() == 0 && !done()) rung_.wait(lock);
  }
}

void lane::ring() {
  const checked_lock lock(mutex_);
  rung_.notify_all();
}

}  // namespace troupe::engine
