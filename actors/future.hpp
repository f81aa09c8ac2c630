// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <troupe/actors/support/blocking_observer.hpp>
#include <troupe/actors/support/call_scope.hpp>
#include <troupe/actors/support/lost_exception.hpp>
#include <troupe/actors/support/spin_pause.hpp>
#include <troupe/actors/support/thread_modes.hpp>
#include <troupe/messages/errors.hpp>
#include <troupe/messages/mutex.hpp>

namespace troupe {

namespace detail {

/// How long a waiting thread polls for its result before it sleeps.
inline constexpr std::chrono::microseconds awake_for{300};

/// While a continuation_scope lives, its thread runs a continuation.
class continuation_scope {
 public:
  continuation_scope() noexcept { ++depth(); }
  ~continuation_scope() { --depth(); }
  continuation_scope(const continuation_scope&) = delete;
  continuation_scope& operator=(const continuation_scope&) = delete;

  static bool active() noexcept { return depth() > 0; }
  /// Throws troupe::error (misuse) inside a continuation.
  static void refuse_to_wait();

 private:
  static int& depth() noexcept;
};

}  // namespace detail

/// A value that arrives once, from any thread.
///   FU-1  a future is completed exactly once; later completions are ignored.
///   FU-2  `get` with a deadline returns or throws at its deadline at the latest.
///   FU-3  a continuation runs exactly once: on the thread that completes the future, or, if the future is complete, on the
///         thread that adds the continuation. The continuation has the context, the grad mode, the inference mode, the autocast
///         and, within a call, the deadline of the code that added it.
///   FU-4  a continuation cannot wait, because it may run on the thread that brings the results: `get` of an incomplete future
///         throws in a continuation.
///   FU-5  if `post_to_waiter` returns true, the errand runs exactly once, on a thread that waits in `get` without a deadline,
///         before that `get` returns.
/// `finish` (if set) turns the raw value into the final value, once, on the thread of the first get(). An exception of `finish`
/// fails the future. An exception of a continuation goes to stderr; the other continuations still run.
template <class T>
class future {
 public:
  struct state {
    checked_mutex mutex;
    std::condition_variable ready;
    std::mutex finishing;  // held while `finish` runs
    std::optional<T> value;
    std::optional<error> failure;
    std::function<void(T&)> finish;
    std::vector<std::function<void(future)>> continuations TROUPE_GUARDED_BY(mutex);
    std::list<std::function<void()>> errands TROUPE_GUARDED_BY(mutex);
    std::atomic<unsigned> news{0};          // number of completions and errands; written under `mutex`, read without it
    int idle TROUPE_GUARDED_BY(mutex) = 0;  // threads that wait for completion or an errand
    bool complete TROUPE_GUARDED_BY(mutex) = false;
  };

  future() : state_(std::make_shared<state>()) {}

  static future failed(error why) {
    future result;
    result.set_error(std::move(why));
    return result;
  }

  void set_value(T value) {
    settle([&](state& s) { s.value.emplace(std::move(value)); });
  }
  void set_error(error failure) {
    settle([&](state& s) { s.failure.emplace(std::move(failure)); });
  }
  /// Sets `finish`. To be called before other threads have the future.
  void set_finish(std::function<void(T&)> finish) { state_->finish = std::move(finish); }

  bool ready() const {
    checked_lock lock(state_->mutex);
    return state_->complete;
  }

  /// The value; throws troupe::error if the future failed.
  T get() const {
    wait([](state& s) {
      checked_unique_lock lock(s.mutex);
      // The thread of a call has freed its worker slot, so it runs no errand.
      if (support::call_scope::observer() == nullptr) run_errands(s, lock);
      while (!s.complete) s.ready.wait(lock);
      return true;
    });
    return finished_value();
  }

  /// Asks a thread that waits in get() to run `errand` while it waits. `errand` must not throw. Returns false if no such
  /// thread waits, or if each of these threads has an errand already.
  bool post_to_waiter(std::function<void()> errand) const {
    {
      checked_lock lock(state_->mutex);
      if (state_->complete || state_->idle <= static_cast<int>(state_->errands.size())) return false;
      state_->errands.push_back(std::move(errand));
      ++state_->news;
    }
    state_->ready.notify_all();
    return true;
  }

  /// The value; throws troupe::error (deadline_passed) if the value does not arrive within `patience`. get() may be called
  /// again.
  T get(std::chrono::nanoseconds patience) const {
    const auto until = std::chrono::steady_clock::now() + patience;
    const bool arrived = wait([&](state& s) {
      checked_unique_lock lock(s.mutex);
      return s.ready.wait_until(lock, until, [&]() TROUPE_REQUIRES(s.mutex) { return s.complete; });
    });
    if (!arrived)
      throw error(errc::deadline_passed,
                  "the result did not arrive within " + std::to_string(patience.count() / 1'000'000) + " ms");
    return finished_value();
  }

  /// Runs `next` with this future once it is complete.
  void then(std::function<void(future)> next) const {
    auto in_scope = [next = std::move(next), here = support::call_scope::here(), context = support::call_scope::context(),
                     place = support::call_scope::next_place(), bounds = support::call_scope::current_bounds(),
                     format = support::call_scope::format(), modes = support::modes_of_thread(true)](const future& self) {
      const support::call_scope scope(here, context, place, {}, bounds, format);
      const support::modes_scope computes(modes);
      const detail::continuation_scope no_waiting;
      next(self);
    };
    {
      checked_lock lock(state_->mutex);
      if (!state_->complete) {
        state_->continuations.push_back(std::move(in_scope));
        return;
      }
    }
    run(in_scope);
  }

 private:
  // Waits with `await(state)` unless the future is complete. The observer is called without the lock, because the
  // observer may lock a mutex of its own.
  template <class F>
  bool wait(F await) const {
    if (ready()) return true;
    detail::continuation_scope::refuse_to_wait();
    auto* observer = support::call_scope::observer();
    if (observer != nullptr) observer->blocked();
    const bool arrived = await(*state_);
    if (observer != nullptr) observer->resumed();
    return arrived;
  }

  // Runs errands until the future is complete and no errand is left. An errand may complete the future.
  static void run_errands(state& s, checked_unique_lock& lock) TROUPE_REQUIRES(s.mutex) {
    for (;;) {
      ++s.idle;
      if (!s.complete && s.errands.empty()) stay_awake(s);
      while (!s.complete && s.errands.empty()) s.ready.wait(lock);
      --s.idle;
      if (s.errands.empty()) return;
      const auto errand = std::move(s.errands.front());
      s.errands.pop_front();
      s.mutex.unlock();
      errand();
      s.mutex.lock();
    }
  }

  // Waking a core that sleeps takes longer than a step of a small pass, so the thread polls for a while before it sleeps.
  // spin_pause yields the core to threads that need it.
  static void stay_awake(state& s) TROUPE_REQUIRES(s.mutex) {
    const auto known = s.news.load(std::memory_order_relaxed);
    const auto until = std::chrono::steady_clock::now() + detail::awake_for;
    s.mutex.unlock();
    while (s.news.load(std::memory_order_acquire) == known && std::chrono::steady_clock::now() < until) detail::spin_pause();
    s.mutex.lock();
  }

  // After completion only `finish` changes the value or the failure, and `finish` runs once. So no lock is needed to read them
  // after it. (std::call_once makes a system call for each future.)
  T finished_value() const {
    auto& s = *state_;
    run_finish(s);
    if (s.failure) throw *s.failure;
    return *s.value;
  }

  static void run_finish(state& s) {
    const std::lock_guard lock(s.finishing);
    const auto finish = std::exchange(s.finish, nullptr);
    if (!finish || s.failure) return;
    try {
      finish(*s.value);
    } catch (const error& problem) {
      s.failure.emplace(problem);
    } catch (const std::exception& problem) {
      s.failure.emplace(errc::function_failed, problem.what());
    }
  }

  template <class F>
  void settle(F&& fill) {
    std::vector<std::function<void(future)>> continuations;
    {
      checked_lock lock(state_->mutex);
      if (state_->complete) return;
      fill(*state_);
      state_->complete = true;
      ++state_->news;
      continuations.swap(state_->continuations);
    }
    state_->ready.notify_all();
    for (const auto& next : continuations) run(next);
  }

  void run(const std::function<void(future)>& continuation) const {
    try {
      continuation(*this);
    } catch (const std::exception& problem) {
      support::report_lost_exception("a continuation", problem.what());
    } catch (...) {
      support::report_lost_exception("a continuation", "an exception of unknown type");
    }
  }

  std::shared_ptr<state> state_;
};

/// The value of a future without a result: the future only says that something is done.
struct done {};

}  // namespace troupe
