// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/engine/job_board.hpp>

#include <atomic>
#include <cfenv>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>

#include <ATen/Parallel.h>
#include <ATen/ThreadLocalState.h>

namespace troupe::engine {

struct job_board::state {
  explicit state(std::function<void(job&)> run) : run(std::move(run)), threads(at::get_num_threads()) {
    std::fegetenv(&rounding);
  }

  void work();
  bool more_soon();
  std::unique_ptr<job> begin();
  void perform(job& which) noexcept;

  const std::function<void(job&)> run;
  const at::ThreadLocalState thread_state;
  const int threads;
  std::fenv_t rounding{};  // rounding mode, and whether denormal numbers are flushed to zero

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::unique_ptr<job>> waiting;
  std::vector<std::unique_ptr<job>> done;
  std::size_t running = 0;  // jobs that workers run now
  std::size_t visits = 0;   // workers that are in work() or have been asked to call work()
  std::atomic<bool> closed{false};
  std::atomic<std::size_t> waiting_count{0};
  std::atomic<std::size_t> done_count{0};
};

std::unique_ptr<job> job_board::state::begin() {
  if (waiting.empty()) return nullptr;
  std::unique_ptr<job> next = std::move(waiting.front());
  waiting.pop_front();
  waiting_count.store(waiting.size(), std::memory_order_relaxed);
  return next;
}

void job_board::state::perform(job& which) noexcept {
  try {
    run(which);
  } catch (...) {
    which.failure = std::current_exception();
    which.inputs.clear();
  }
}

// Waits up to 50 microseconds for another job. Often the pass adds its next large function in less time than it takes to wake a
// worker.
bool job_board::state::more_soon() {
  using clock = std::chrono::steady_clock;
  constexpr std::chrono::microseconds patience{50};
  const auto until = clock::now() + patience;
  while (!closed.load(std::memory_order_relaxed)) {
    if (waiting_count.load(std::memory_order_relaxed) > 0) return true;
    if (clock::now() > until) return false;
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
  return false;
}

// Runs jobs on the thread of a worker until none is left. Changes that a job makes to the thread's state are undone.
void job_board::state::work() {
  std::fenv_t rounding_here{};
  std::fegetenv(&rounding_here);
  std::unique_lock lock(mutex);
  while (!closed) {
    std::unique_ptr<job> next = begin();
    if (!next) {
      lock.unlock();
      const bool more = more_soon();
      lock.lock();
      if (!more && waiting.empty()) break;
      continue;
    }
    ++running;
    lock.unlock();
    {
      const at::ThreadLocalStateGuard as_in_the_pass(thread_state);
      if (at::get_num_threads() != threads) at::set_num_threads(threads);
      std::fesetenv(&rounding);
      perform(*next);
      std::fesetenv(&rounding_here);
    }
    lock.lock();
    --running;
    done.push_back(std::move(next));
    done_count.store(done.size(), std::memory_order_release);
    changed.notify_all();
  }
  --visits;
}

job_board::job_board(cpu_workers& workers, std::function<void(job&)> run)
    : workers_(workers), state_(std::make_shared<state>(std::move(run))) {}

job_board::~job_board() {
  std::unique_lock lock(state_->mutex);
  state_->closed = true;
  state_->changed.wait(lock, [this] { return state_->running == 0; });
  state_->waiting.clear();
  state_->done.clear();
}

void job_board::add(std::unique_ptr<job> next) {
  bool call = false;
  {
    const std::lock_guard lock(state_->mutex);
    state_->waiting.push_back(std::move(next));
    state_->waiting_count.store(state_->waiting.size(), std::memory_order_relaxed);
    call = state_->visits < workers_.count();
    state_->visits += call ? 1 : 0;
  }
  if (call) workers_.post([board = state_] { board->work(); });
}

std::vector<std::unique_ptr<job>> job_board::collect() {
  if (state_->done_count.load(std::memory_order_acquire) == 0) return {};
  const std::lock_guard lock(state_->mutex);
  state_->done_count.store(0, std::memory_order_relaxed);
  return std::exchange(state_->done, {});
}

std::unique_ptr<job> job_board::take() {
  const std::lock_guard lock(state_->mutex);
  return state_->begin();
}

bool job_board::wait() {
  std::unique_lock lock(state_->mutex);
  if (state_->running == 0 && state_->done.empty()) return false;
  state_->changed.wait(lock, [this] { return !state_->done.empty(); });
  return true;
}

}  // namespace troupe::engine
