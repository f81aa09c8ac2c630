// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include <troupe/messages/errors.hpp>

namespace troupe {

/// Told when the calling thread is about to block on a future and when it goes on, so that a pool can lend its place.
class blocking_observer {
 public:
  virtual ~blocking_observer() = default;
  virtual void blocked() = 0;
  virtual void resumed() = 0;
  /// The observer of this thread, or null.
  static blocking_observer*& current();
};

/// A value that arrives once, from any thread.
///   FU-1  it is completed exactly once; later completions are ignored.
///   FU-2  `get` ends at its deadline at the latest, if one is given.
///   FU-3  a continuation runs exactly once, on the thread that completes the future or that adds it.
/// `finish` (if set) turns the raw value into the final one, once, on the thread of the first get() or continuation.
template <class T>
class future {
 public:
  struct state {
    std::mutex mutex;
    std::condition_variable ready;
    std::optional<T> value;
    std::optional<error> failure;
    std::function<void(T&)> finish;
    std::vector<std::function<void(future)>> continuations;
    bool complete = false;
  };

  future() : state_(std::make_shared<state>()) {}

  void set_value(T value) {
    settle([&](state& s) { s.value.emplace(std::move(value)); });
  }
  void set_error(error failure) {
    settle([&](state& s) { s.failure.emplace(std::move(failure)); });
  }
  /// Set before the future is handed out.
  void set_finish(std::function<void(T&)> finish) { state_->finish = std::move(finish); }

  bool ready() const {
    std::lock_guard lock(state_->mutex);
    return state_->complete;
  }

  /// The value; throws troupe::error if the future failed.
  T get() const {
    std::unique_lock lock(state_->mutex);
    if (!state_->complete) {
      auto* observer = blocking_observer::current();
      if (observer != nullptr)
        observer->blocked();
      state_->ready.wait(lock, [&] { return state_->complete; });
      if (observer != nullptr) {
        lock.unlock();
        observer->resumed();
        lock.lock();
      }
    }
    if (state_->failure)
      throw *state_->failure;
    if (auto finish = std::exchange(state_->finish, nullptr))
      finish(*state_->value);
    return *state_->value;
  }

  /// Runs `next` with this future once it is complete.
  void then(std::function<void(future)> next) const {
    {
      std::lock_guard lock(state_->mutex);
      if (!state_->complete) {
        state_->continuations.push_back(std::move(next));
        return;
      }
    }
    next(*this);
  }

 private:
  template <class F>
  void settle(F&& fill) {
    std::vector<std::function<void(future)>> continuations;
    {
      std::lock_guard lock(state_->mutex);
      if (state_->complete)
        return;
      fill(*state_);
      state_->complete = true;
      continuations.swap(state_->continuations);
    }
    state_->ready.notify_all();
    for (auto& next : continuations)
      next(*this);
  }

  std::shared_ptr<state> state_;
};

/// The value of a future that only says "done".
struct done {};

}  // namespace troupe
