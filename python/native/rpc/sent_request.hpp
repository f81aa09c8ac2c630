// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/python/rpc/threads_test.py
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>

namespace torchtroupe {

/// A request of a thread. rpc_sync waits for the answer, so its thread itself can run the end of the request, which wakes one
/// thread less.
///   WA-1  if the thread waits in wait(), the end of its last request runs there, once. Else hand_over() takes nothing.
class sent_request {
 public:
  /// The request that the calling thread begins now.
  static std::shared_ptr<sent_request> of_this_thread();
  /// Waits for the end of the last request of the calling thread, for `patience` at most. Returns false if that is over, and
  /// may then be called again.
  static bool wait(std::chrono::duration<double> patience);
  /// Whether the calling thread waits for its next request as soon as that is sent. Deletions of RRefs do not count. Then
  /// agent::send() waits, and hears of signals.
  static bool& is_awaited_at_once();

  /// Takes `end` if the thread waits.
  bool hand_over(std::function<void()>& end);
  /// Lets wait() return at once. To be called by the thread of the request.
  void not_sent() { is_answered_ = true; }

 private:
  bool await(std::chrono::duration<double> patience);

  std::mutex mutex_;  // guards the members below
  std::condition_variable answered_;
  std::function<void()> end_;
  std::atomic<bool> is_answered_{false};  // may be read without the lock
  bool is_awaited_ = false;
};

}  // namespace torchtroupe
