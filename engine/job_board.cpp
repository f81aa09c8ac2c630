// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/engine/job_board.hpp>

#include <atomic>
#include <cfenv>
#include <condition_variable>
#include <optional>
#include <utility>

#include <ATen/Parallel.h>
#include <ATen/ThreadLocalState.h>

#include <troupe/engine/current_streams.hpp>
#include <troupe/messages/mutex.hpp>

namespace troupe::engine {

/// The state that the pass and the workers share.
struct job_board::state {
  state(job_board& board, calls given, bool uses_accelerator)
      : board(board), call(std::move(given)), threads(at::get_num_threads()) {
    std::fegetenv(&rounding);
    if (uses_accelerator) streams.emplace();
  }

  template <class Work>
  void as_in_the_pass(Work work) const;
  void perform(job& which) const noexcept;
  void come_back(std::unique_ptr<job> which);
  void go_on() noexcept;
  void wake_owner(std::unique_ptr<job> which = nullptr) noexcept;
  void ring_owner() noexcept TROUPE_REQUIRES(mutex);
  bool has_done() const noexcept { return done_count.load(std::memory_order_acquire) > 0; }
  bool has_news() const noexcept { return has_done() || woken.load(std::memory_order_acquire); }

  job_board& board;  // used with the ownership, and only before `closed`
  const calls call;
  const at::ThreadLocalState thread_state;
  const int threads;
  std::fenv_t rounding{};  // rounding mode, and whether denormal numbers are flushed to zero
  std::optional<const current_streams> streams;

  std::mutex ownership;
  std::atomic<bool> closed{false};  // changes under the ownership

  checked_mutex mutex;
  std::condition_variable changed;
  std::vector<std::unique_ptr<job>> done TROUPE_GUARDED_BY(mutex);
  std::atomic<std::size_t> done_count{0};
  std::unique_ptr<job> left TROUPE_GUARDED_BY(mutex);
  std::atomic<bool> woken{false};
  lane* served_meanwhile TROUPE_GUARDED_BY(mutex) = nullptr;  // the lane that the thread of the pass serves while it waits
};

struct job_board::handed_over final : lane_task {
  handed_over(std::shared_ptr<state> board, std::unique_ptr<job> what, std::uint32_t depth, std::uint64_t sequence)
      : lane_task(depth, sequence), board(std::move(board)), what(std::move(what)) {}

  void run() noexcept override {
    board->perform(*what);
    board->come_back(std::move(what));
    board->go_on();
  }

  const std::shared_ptr<state> board;
  std::unique_ptr<job> what;  // belongs to the thread that has claimed the task
};

// Runs `work` with the state of the pass's thread, and then restores the state of the calling thread.
template <class Work>
void job_board::state::as_in_the_pass(Work work) const {
  std::fenv_t rounding_here{};
  std::fegetenv(&rounding_here);
  const int threads_here = at::get_num_threads();
  const auto set = [&](const std::fenv_t& mode, int count) {
    if (threads_here != threads) at::set_num_threads(count);
    std::fesetenv(&mode);
  };
  set(rounding, threads);
  try {
    const at::ThreadLocalStateGuard as_there(thread_state);
    std::optional<const same_streams> on_its_streams;
    if (streams) on_its_streams.emplace(*streams);
    work();
  } catch (...) {
    set(rounding_here, threads_here);
    throw;
  }
  set(rounding_here, threads_here);
}

void job_board::state::perform(job& which) const noexcept {
  try {
    as_in_the_pass([&] { call.run(which); });
  } catch (...) {
    which.failure = std::current_exception();
    which.inputs.clear();
  }
}

void job_board::state::come_back(std::unique_ptr<job> which) {
  const checked_lock lock(mutex);
  done.push_back(std::move(which));
  done_count.store(done.size(), std::memory_order_release);
}

// Goes on with the pass while finished jobs wait. Returns if another thread has the ownership, because that thread looks for
// finished jobs after it has given the ownership up (JB-4).
void job_board::state::go_on() noexcept {
  while (has_done()) {
    if (closed || !call.go_on) {
      const checked_lock lock(mutex);
      return ring_owner();
    }
    const job_board::ownership own(ownership, std::try_to_lock);
    if (!own) return;
    if (closed) continue;  // the board was closed just now: another worker may have left its job, so this thread looks again
    board.added_ = 0;
    try {
      as_in_the_pass([&] { call.go_on(board); });
      if (board.added_ > 0 && !(board.added_ == 1 && board.begins_here())) wake_owner();
    } catch (...) {
      auto lost = std::make_unique<job>();
      lost->failure = std::current_exception();
      wake_owner(std::move(lost));
    }
  }
}

void job_board::state::wake_owner(std::unique_ptr<job> which) noexcept {
  const checked_lock lock(mutex);
  if (which && !left) left = std::move(which);
  woken.store(true, std::memory_order_release);
  ring_owner();
}

// Wakes the thread of the pass, which waits for has_news().
void job_board::state::ring_owner() noexcept {
  if (served_meanwhile != nullptr) served_meanwhile->ring();
  changed.notify_all();
}

job_board::job_board(calls given, bool uses_accelerator, std::uint32_t depth)
    : state_(std::make_shared<state>(*this, std::move(given), uses_accelerator)), depth_(depth) {}

job_board::~job_board() {
  {
    const ownership own(state_->ownership);
    state_->closed = true;
  }
  while (take()) {
  }
  for (collect(); away_ > 0; collect()) {
    take_left();
    sleep();
  }
}

job_board::ownership job_board::own() { return ownership(state_->ownership); }

void job_board::add(lane& where, std::unique_ptr<job> next, std::uint64_t sequence) {
  handed& all = where.what() == lane::kind::cpu ? to_cpu_ : to_accelerators_;
  while (!all.empty() && all.front()->is_claimed()) all.pop_front();
  all.push_back(std::make_shared<handed_over>(state_, std::move(next), depth_, sequence));
  ++away_;
  ++added_;
  added_to_ = &where;
  where.add(all.back());
}

/// Whether the calling worker will run, as its next task, the job that was added last.
bool job_board::begins_here() {
  const handed& all = added_to_->what() == lane::kind::cpu ? to_cpu_ : to_accelerators_;
  return added_to_->promises(all.back());
}

bool job_board::has_done() const noexcept { return state_->has_done(); }

std::vector<std::unique_ptr<job>> job_board::collect() {
  if (!state_->has_done()) return {};
  const checked_lock lock(state_->mutex);
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

void job_board::wake(std::unique_ptr<job> left) { state_->wake_owner(std::move(left)); }

std::unique_ptr<job> job_board::take_left() {
  if (!state_->woken.load(std::memory_order_acquire)) return nullptr;
  const checked_lock lock(state_->mutex);
  state_->woken.store(false, std::memory_order_relaxed);
  return std::move(state_->left);
}

bool job_board::wait(ownership& own) {
  if (away_ == 0) return false;
  own.unlock();
  sleep();
  own.lock();
  return true;
}

void job_board::sleep() {
  if (lane* const served = lane::of_this_thread()) {
    const auto serve_meanwhile = [this](lane* which) {
      const checked_lock lock(state_->mutex);
      state_->served_meanwhile = which;
    };
    serve_meanwhile(served);
    served->serve_until([this] { return state_->has_news(); });
    serve_meanwhile(nullptr);
  } else {
    checked_unique_lock lock(state_->mutex);
    state_->changed.wait(lock, [this] { return state_->has_news(); });
  }
}

}  // namespace troupe::engine
