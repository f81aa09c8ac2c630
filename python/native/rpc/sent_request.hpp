// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/python/native/sent_request_test.cpp, tests/python/rpc/threads_test.py
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

namespace torchtroupe {

class sent_request;

/// A thread that sends requests. While the thread waits, it runs ends of its requests itself: this wakes one thread less, and
/// leaves the interpreter's lock where it is. A plain end that comes while the thread sends further requests is kept for the
/// thread for a short time, because another thread would take the interpreter's lock away.
///   WA-1  each end runs once: in the thread while it waits, or elsewhere. An end that is kept runs elsewhere if the thread
///         does not wait when the short time is over.
///   WA-2  when wait() returns, no end is kept.
///   WA-3  of the ends for which the thread does not wait, it runs only plain ones. A plain end runs no code of the program,
///         which might wait for what the thread does next: the result is read without such code, and when the end came, no
///         callback had been given to any future.
class sending_thread : public std::enable_shared_from_this<sending_thread> {
 public:
  using work = std::function<void()>;
  /// How long a thread that waits polls before it sleeps: a call within a context takes about half of this.
  static constexpr std::chrono::microseconds awake_for{1000};
  /// For ends that the thread does not run. Lives as long as the ends that name it.
  struct other_way {
    std::function<void(work)> elsewhere;                     // runs the work on another thread
    std::function<void(std::shared_ptr<void>)> drops_later;  // drops the object after the short time
  };

  static const std::shared_ptr<sending_thread>& here();

  /// Waits until done() or for `patience`, or until a handler of a signal has raised an exception, which
  /// python_thread::raise_of_signal() raises. Returns what done() says. done() reads atomics alone. Whoever makes it true locks
  /// `mutex` and then notifies `told`.
  ///   own   the request for whose end the thread waits; null if it waits for something else
  bool wait(const std::function<bool()>& done, std::mutex& mutex, std::condition_variable& told, const sent_request* own,
            std::chrono::duration<double> patience);

  /// Says that the program gives a callback to a future.
  static void note_callback() { has_callbacks_ = true; }

 private:
  friend class sent_request;
  struct place {
    std::mutex* mutex = nullptr;  // null while the thread does not wait, or runs an end
    std::condition_variable* told = nullptr;
    const sent_request* own = nullptr;
  };
  struct taken_end {
    work run;
    bool is_own;
    const other_way* other;
  };

  bool is_sending(const sent_request& before) const;
  bool run_ends(std::unique_lock<std::mutex>& lock);
  std::shared_ptr<void> runs_what_is_left();

  inline static std::atomic<bool> has_callbacks_{false};
  std::mutex mutex_;  // guards the members below; is locked before that of waits_
  place waits_;
  bool runs_plain_ends_ = false;
  bool is_looked_after_ = false;  // what runs_what_is_left() has returned lives
  std::deque<taken_end> ends_;
  std::atomic<bool> has_ends_{false};  // that the thread, which waits, has to run; may be read without the lock
  std::atomic<const sent_request*> last_{nullptr};
  std::atomic<std::int64_t> last_sent_ns_{0};
};

/// A request of a thread, which agent::send() makes.
class sent_request {
 public:
  /// A thread sends further requests if its last one is not older than this.
  static std::chrono::nanoseconds& between_requests();

  /// The request that the calling thread begins now.
  static std::shared_ptr<sent_request> of_this_thread();
  /// Waits for the end of the last request of the calling thread, as sending_thread::wait(). Returns false if the end has not
  /// come, and may then be called again.
  static bool wait(std::chrono::duration<double> patience);
  /// Whether the calling thread waits for its next request as soon as that is sent. Deletions of RRefs do not count. Then
  /// agent::send() waits, and hears of signals.
  static bool& is_awaited_at_once();

  explicit sent_request(std::shared_ptr<sending_thread> by) : by_(std::move(by)) {}
  /// Makes `end` run: in the thread, or in the other way. `end` throws nothing.
  void run(sending_thread::work end, bool is_plain, const sending_thread::other_way& other);
  /// Lets wait() return at once. To be called by the thread of the request.
  void not_sent() { is_answered_ = true; }

 private:
  const std::shared_ptr<sending_thread> by_;
  std::mutex mutex_;
  std::condition_variable answered_;
  std::atomic<bool> is_answered_{false};
};

}  // namespace torchtroupe
