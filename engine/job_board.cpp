// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/engine/job_board.hpp>

#include <atomic>
#include <cfenv>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>

#include <ATen/Parallel.h>
#include <ATen/ThreadLocalState.h>

#include <troupe/engine/current_streams.hpp>

namespace troupe::engine {

/// What the pass and the workers share.
struct job_board::state {
  state(std::function<void(job&)> run, bool uses_accelerator) : run(std::move(run)), threads(at::get_num_threads()) {
    std::fegetenv(&rounding);
    if (uses_accelerator) streams.emplace();
  }

  void perform_as_in_the_pass(job& which) const noexcept;
  void come_back(std::unique_ptr<job> which);
  bool has_done() const noexcept { return done_count.load(std::memory_order_acquire) > 0; }

  const std::function<void(job&)> run;
  const at::ThreadLocalState thread_state;
  const int threads;
  std::fenv_t rounding{};  // rounding mode, and whether denormal numbers are flushed to zero
  std::optional<const current_streams> streams;

  std::mutex mutex;  // guards the members below
  std::condition_variable changed;
  std::vector<std::unique_ptr<job>> done;
  std::atomic<std::size_t> done_count{0};
  lane* served_meanwhile = nullptr;  // by the thread of the pass, while it waits
};

struct job_board::handed_over final : lane_task {
  handed_over(std::shared_ptr<state> board, std::unique_ptr<job> what, std::uint32_t depth, std::uint64_t sequence)
      : lane_task(depth, sequence), board(std::move(board)), what(std::move(what)) {}

  void run() noexcept override {
    board->perform_as_in_the_pass(*what);
    board->come_back(std::move(what));
  }

  const std::shared_ptr<state> board;
  std::unique_ptr<job> what;  // belongs to the thread that has claimed the task
};

// Changes that a job makes to the thread's state are undone.
void job_board::state::perform_as_in_the_pass(job& which) const noexcept {
  std::fenv_t rounding_here{};
  std::fegetenv(&rounding_here);
  const int threads_here = at::get_num_threads();
  try {
    const at::ThreadLocalStateGuard as_in_the_pass(thread_state);
    std::optional<const current_streams> streams_here;
    if (streams) {
      streams_here.emplace();
      streams->set();
    }
    if (threads_here != threads) at::set_num_threads(threads);
    std::fesetenv(&rounding);
    try {
      run(which);
    } catch (...) {
      which.failure = std::current_exception();
      which.inputs.clear();
    }
    if (streams_here) streams_here->set();
  } catch (...) {  // of an accelerator that answers no more
    if (!which.failure) which.failure = std::current_exception();
  }
  std::fesetenv(&rounding_here);
  if (threads_here != threads) at::set_num_threads(threads_here);
}

void job_board::state::come_back(std::unique_ptr<job> which) {
  const std::lock_guard lock(mutex);
  done.push_back(std::move(which));
  done_count.store(done.size(), std::memory_order_release);
  if (served_meanwhile != nullptr) served_meanwhile->ring();
  changed.notify_all();
}

job_board::job_board(std::function<void(job&)> run, bool uses_accelerator, std::uint32_t depth)
    : state_(std::make_shared<state>(std::move(run), uses_accelerator)), depth_(depth) {}

job_board::~job_board() {
  while (take()) {
  }
  while (wait()) collect();
}

void job_board::add(lane& where, std::unique_ptr<job> next, std::uint64_t sequence) {
  handed& all = where.what() == lane::kind::cpu ? to_cpu_ : to_accelerators_;
  while (!all.empty() && all.front()->is_claimed()) all.pop_front();
  all.push_back(std::make_shared<handed_over>(state_, std::move(next), depth_, sequence));
  ++away_;
  where.add(all.back());
}

std::vector<std::unique_ptr<job>> job_board::collect() {
  if (!state_->has_done()) return {};
  const std::lock_guard lock(state_->mutex);
  state_->done_count.store(0, std::memory_order_relaxed);
  away_ -= state_->done.size();
  return std::exchange(state_->done, {});
}

std::unique_ptr<job> job_board::take() {
  auto next = take(to_cpu_);
  return next ? std::move(next) : take(to_accelerators_);
}

std::unique_ptr<job> job_board::take(handed& from) {
  while (!from.empty()) {
    const auto next = std::move(from.front());
    from.pop_front();
    if (!next->claim()) continue;
    --away_;
    return std::move(next->what);
  }
  return nullptr;
}

bool job_board::wait() {
  if (away_ == 0) return false;
  if (lane* const own = lane::of_this_thread()) {
    const auto serve_meanwhile = [this](lane* which) {
      const std::lock_guard lock(state_->mutex);
      state_->served_meanwhile = which;
    };
    serve_meanwhile(own);
    own->serve_until([this] { return state_->has_done(); });
    serve_meanwhile(nullptr);
  } else {
    std::unique_lock lock(state_->mutex);
    state_->changed.wait(lock, [this] { return state_->has_done(); });
  }
  return true;
}

}  // namespace troupe::engine
