// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/python/native/thread_pool_test.cpp, tests/python/rpc/agent_test.py
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include <troupe/actors/support/blocking_observer.hpp>
#include <troupe/messages/mutex.hpp>

namespace torchtroupe {

/// What a thread that runs Python tells its pool: a thread that has sent a request probably waits for the answer. So its slot
/// is free from its first open request or wait for a future of troupe until the last of these has ended, or until its work
/// ends. Nested requests never lack a thread.
///   WY-1  `blocked` and `resumed` are called by turns, and `blocked` first. After the end of the work, neither is called.
class waiting_thread {
 public:
  /// The work of the calling thread, from construction to destruction. If `blocked` throws, so do request() and the wait.
  waiting_thread(std::function<void()> blocked, std::function<void()> resumed);
  /// Work of a thread that has an observer, which hears of requests too.
  waiting_thread();
  ~waiting_thread();
  waiting_thread(const waiting_thread&) = delete;
  waiting_thread& operator=(const waiting_thread&) = delete;

  /// Counts a request of the calling thread; the result is called when the request has ended. Null outside such work.
  static std::function<void()> request();

 private:
  struct account;
  std::shared_ptr<account> account_;
  std::shared_ptr<account> outer_;
  troupe::blocking_observer* outer_observer_;
};

/// Runs tasks on threads of its own: the callbacks of futures, which may run Python and wait. Call workers of the node would
/// not do: requests that wait for callbacks may hold them all.
///   QK-1  a task starts at once if fewer than `most` tasks compute: tasks that wait (waiting_thread) do not count. A task
///         whose wait ends goes on at once, so more than `most` may compute for a while. Tasks that come together start at most
///         `most` threads.
///   QK-2  stop() runs the tasks that were given before, and returns when all have ended. Later tasks run on the thread that
///         gives them.
///   QK-3  until stop(), one thread at least does not wait, so each task starts at last. If the system gives no further thread,
///         tasks start later, and the wait of the last thread fails.
class thread_pool {
 public:
  /// Throws troupe::error if the system gives no thread.
  explicit thread_pool(std::size_t most);
  ~thread_pool() { stop(); }
  thread_pool(const thread_pool&) = delete;
  thread_pool& operator=(const thread_pool&) = delete;

  void run(std::function<void()> task);
  /// Must not be called by a task.
  void stop();

  std::size_t size() const;
  std::size_t idle() const;

 private:
  void serve();
  void block();
  void resume();
  bool has_slot() const TROUPE_REQUIRES(mutex_) { return running_ - blocked_ < most_; }
  void wake_thread() TROUPE_REQUIRES(mutex_);
  void add_thread() TROUPE_REQUIRES(mutex_);

  const std::size_t most_;
  mutable troupe::checked_mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> tasks_ TROUPE_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_ TROUPE_GUARDED_BY(mutex_);
  std::size_t idle_ TROUPE_GUARDED_BY(mutex_) = 0;     // threads without a task
  std::size_t running_ TROUPE_GUARDED_BY(mutex_) = 0;  // tasks
  std::size_t blocked_ TROUPE_GUARDED_BY(mutex_) = 0;  // tasks of these that wait
  bool stopped_ TROUPE_GUARDED_BY(mutex_) = false;
};

}  // namespace torchtroupe
