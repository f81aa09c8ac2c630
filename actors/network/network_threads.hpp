// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/network/shared_multiplexer_test.cpp
#pragma once

#include <sys/types.h>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include <troupe/actors/network/event_loop.hpp>
#include <troupe/actors/network/watched_connections.hpp>
#include <troupe/actors/support/owned_descriptor.hpp>
#include <troupe/messages/mutex.hpp>

namespace troupe::network {

/// The two threads that serve the event loops of all nodes of a process. A message between two of these nodes wakes no thread,
/// and the work of many nodes stays on one core. One of the two threads is the leader: it waits for events and handles them. A
/// message may ask for a job that is likely to be short. The leader then stops leading, runs the job, leads again and sends the
/// result, so no other thread is woken between request and answer. The second thread stands by, and becomes the leader when the
/// job takes too long.
///   NT-1  there is at most one leader thread, and it alone handles events and posts.
///   NT-2  while no thread leads, the thread that stands by looks every `tick`, and leads if no thread has led since its last
///         look. It leads at once if a third thread posts to a loop, or if the job waits for a future. Posts of the job itself
///         wait until the job's thread leads again.
///   NT-3  jobs run one at a time, on a thread that does not lead. When the other thread becomes the leader, jobs that still
///         wait are sent elsewhere. Jobs that take turns are sent elsewhere once the job that runs has run for `longest_turn`
///         or waits for a future, or together with a job that waits before them; until then, further jobs that take turns may
///         join them.
///   NT-4  the leader sleeps only while no event loop has something to do; note() wakes the leader.
///   NT-5  once the future that serve() has returned is ready, the network threads do not use the event loop any more.
///   NT-6  both threads start in the constructor, which can report that the system gives no thread. serve() could not report
///         this: it runs on a thread of CAF.
class network_threads {
 public:
  static constexpr std::chrono::microseconds tick{400};
  static constexpr std::chrono::microseconds longest_turn{5000};
  /// How long the leader polls before it sleeps. The leader polls only after `enough_close_events` events with less than
  /// `awake_for` between them.
  static constexpr std::chrono::microseconds awake_for{1000};
  static constexpr int enough_close_events = 16;
  static constexpr std::chrono::microseconds longest_busy{1000};
  /// How often in a row the leader skips the sockets while there is traffic in shared memory.
  static constexpr int most_unpolled = 8;
  /// How many rounds of posts, each posted by the round before it, are handled before the sockets have their turn.
  static constexpr int most_rounds = 16;

  using job = network_job;

  /// The network threads of this process. The threads live as long as a pointer to them.
  static std::shared_ptr<network_threads> of_process();

  /// Throws std::system_error if the system gives no thread.
  network_threads();
  ~network_threads();

  /// Serves the loop; the future is ready when the loop has ended. The loop's left() has to wait until serve() has returned.
  std::future<void> serve(event_loop& loop);
  /// Whether the calling thread is the leader.
  bool lead_here() const noexcept;
  /// Says that something was posted to the loop. Pre: the loop is served.
  void note(event_loop& loop);
  /// Makes the leader thread call go_on() of the loop, after the sockets have had their turn. Called by the leader thread.
  void note_later(event_loop& loop);

  /// Says that more of a large tensor is on its way. Until enough events of any loop have come close together again, the leader
  /// sleeps instead of polling, also for shared memory. Called by the leader thread. (A reader that polls for the rest can make
  /// the sender's copies into the socket take four times as long, for seconds: docs/results/2026-11-30.md.)
  void rest_for_large() noexcept { leader_.close_events = 0; }

  /// Used by the leader thread only.
  watched_connections& watched() noexcept { return leader_.watched; }

  /// Makes this thread run the job once the thread has stopped leading, or makes the job wait for its turn. False: the job was
  /// not taken, because this thread does not lead, the loop takes no more jobs, or a job runs behind which this one may not
  /// wait.
  bool run_soon(event_loop& of, job work);
  /// Refuses further jobs of the loop, and returns when none of its jobs runs or waits. Not to be called from a job.
  void finish_jobs(event_loop& of);

  /// Makes the leader call do_idle_work() of the loop once: when nothing else is due, or after `longest_busy`.
  void ask_for_idle_work(event_loop& of);

 private:
  /// Whether a thread leads.
  ///
  ///   state    meaning                                               next state
  ///   vacant   no thread leads                                       lead(): held. wake_other(): called
  ///   called   no thread leads; the thread that stands by has to     lead(): held
  ///            lead at once
  ///   held     a thread leads                                        lead(), at its end: vacant
  enum class leadership { vacant, called, held };

  class job_scope;
  struct queued_job {
    event_loop* of;
    job work;
  };

  void start();
  void end();
  void lead_or_follow();
  bool try_to_lead() noexcept;
  void release() noexcept;
  std::optional<queued_job> lead();
  bool stand_by();
  void wake_other();
  void run_jobs(std::optional<queued_job> next);
  void send_stuck_jobs();
  bool is_stuck() const TROUPE_REQUIRES(turns_.mutex);
  void step();
  bool handle_posts();
  bool handle_events(bool wait);
  bool look_at_watched();
  bool go_on();
  bool do_idle_work();
  void let_go(event_loop& loop);
  bool any_noted();
  void note_event();
  void sleep();

  const pid_t process_;                     // a forked child has none of the threads
  const support::owned_descriptor polled_;  // epoll: the loops' handles and bell_
  const support::owned_descriptor bell_;    // wakes the leader when it sleeps
  std::vector<std::thread> threads_;
  std::atomic<bool> led_{false};
  std::atomic<std::uint64_t> times_led_{0};
  std::atomic<bool> over_{false};
  std::atomic<bool> jobs_wait_{false};  // whether turns_.jobs has entries
  std::atomic<bool> idle_work_due_{false};

  struct {
    checked_mutex mutex;
    std::vector<event_loop*> loops TROUPE_GUARDED_BY(mutex);
    std::vector<event_loop*> noted TROUPE_GUARDED_BY(mutex);
    bool asleep TROUPE_GUARDED_BY(mutex) = false;
  } notes_;

  struct {  // used by the leader thread only
    std::vector<event_loop*> noted;
    std::vector<event_loop*> due;
    std::vector<event_loop*> later;     // loops that go on when the sockets have had their turn
    std::vector<event_loop*> going_on;  // those of `later` whose turn it is
    watched_connections watched;
    int unpolled = 0;
    std::deque<queued_job> new_jobs;
    std::chrono::steady_clock::time_point last_event;
    int close_events = 0;
    std::chrono::steady_clock::time_point last_idle;
  } leader_;

  struct {
    checked_mutex mutex;
    std::condition_variable told;
    std::condition_variable job_ended;
    std::deque<queued_job> jobs TROUPE_GUARDED_BY(mutex);
    leadership now TROUPE_GUARDED_BY(mutex) = leadership::vacant;
    bool job_runs TROUPE_GUARDED_BY(mutex) = false;
    std::chrono::steady_clock::time_point job_began TROUPE_GUARDED_BY(mutex);  // long ago if the job waits for a future
    bool job_ran TROUPE_GUARDED_BY(mutex) = false;    // a job began since the last look of the thread that stands by
    bool one_looks TROUPE_GUARDED_BY(mutex) = false;  // the thread that stands by looks every `tick`
  } turns_;
};

}  // namespace troupe::network
