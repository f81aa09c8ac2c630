// SPDX-License-Identifier: BSD-3-Clause
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
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include <troupe/actors/network/event_loop.hpp>
#include <troupe/actors/network/watched_connections.hpp>
#include <troupe/actors/support/owned_descriptor.hpp>

namespace troupe::network {

/// The two threads that serve the event loops of all nodes of a process, so that a message between two of these wakes none and what
/// many nodes do stays on one core. One of the two leads at a time: it waits for events and handles them. What a message asks for,
/// if that is likely to be short, the thread that read it does itself, once it has stopped leading, and then leads again and sends
/// what came of it: no other thread is woken between question and answer. The second thread stands by, and leads when the first is
/// away for too long.
///   NT-1  one thread leads at a time, and it alone handles events and what was posted.
///   NT-2  while none leads, one looks every `tick`, and leads if none did since it looked before; at once, when another thread
///         posts something or the job waits for a future. What the job posts is for its own thread, when it leads again.
///   NT-3  jobs run one at a time, on a thread that does not lead; those that still wait behind one when the other thread leads
///         go elsewhere.
///   NT-4  who leads sleeps only while no event loop has something to do, and is woken by who notes one then.
///   NT-5  an event loop that ended is not touched again once what serve() returned is ready.
class network_threads {
 public:
  static constexpr std::chrono::microseconds tick{400};
  /// How long who leads polls before it sleeps, once so many events came closer to each other than that.
  static constexpr std::chrono::microseconds awake_for{1000};
  static constexpr int enough_close_events = 8;
  static constexpr std::chrono::microseconds longest_busy{1000};
  /// So often in a row the sockets are not asked, while there is something in memory.
  static constexpr int most_unpolled = 8;
  /// Of what is posted by what was posted, before the sockets have their turn.
  static constexpr int most_rounds = 16;

  /// A short piece of work, and how it is done if this is not the place. What they throw goes to stderr.
  struct job {
    std::function<void()> run;
    std::function<void()> send_elsewhere;
  };

  /// Those of this process, while somebody has them.
  static std::shared_ptr<network_threads> of_process();

  network_threads();
  ~network_threads();
  network_threads(const network_threads&) = delete;
  network_threads& operator=(const network_threads&) = delete;

  /// Ready when it has ended. Its left() is to wait until this has returned: nobody lets go of a loop that others still bring.
  std::future<void> serve(event_loop& loop);
  /// Whether this thread leads.
  bool lead_here() const noexcept;
  /// Something was posted to it. Pre: it is served.
  void note(event_loop& loop);

  /// Of who leads.
  watched_connections& watched() noexcept { return watched_; }

  /// Runs the job on this thread once it no longer leads. False if this thread can't: nothing happened.
  bool run_soon(event_loop& of, job work);
  /// Returns when no job of it runs; from now on none is taken. Not from a job.
  void finish_jobs(event_loop& of);

  /// Once, when nothing else is due, or after `longest_busy`.
  void ask_for_idle_work(event_loop& of);

 private:
  class job_scope;
  struct queued_job {
    event_loop* of;
    job work;
  };

  void start();
  void take_turns();
  bool take() noexcept;
  void release() noexcept;
  std::optional<queued_job> lead();
  bool stand_by();
  void wake_other();
  void wake_sleeper() noexcept;
  void run_jobs(std::optional<queued_job> next);
  void send_stuck_jobs();
  void step();
  bool handle_posts();
  bool handle_events(bool wait);
  bool look_at_watched();
  bool do_idle_work();
  void let_go(event_loop& loop);
  bool any_noted();
  void note_event();
  void sleep();

  const pid_t process_;                     // a fork of it has none of the threads
  const support::owned_descriptor polled_;  // epoll: the loops' handles, and
  const support::owned_descriptor bell_;    // what wakes who sleeps
  std::vector<std::thread> threads_;
  std::atomic<bool> led_{false};
  std::atomic<std::uint64_t> times_led_{0};
  std::atomic<bool> over_{false};
  std::atomic<bool> idle_work_due_{false};

  std::mutex notes_mutex_;  // guards
  std::vector<event_loop*> loops_;
  std::vector<event_loop*> noted_;
  bool asleep_ = false;

  // Of who leads:
  std::vector<event_loop*> own_noted_;
  std::vector<event_loop*> due_;
  watched_connections watched_;
  int unpolled_ = 0;
  std::deque<queued_job> new_jobs_;
  std::chrono::steady_clock::time_point last_event_;
  int close_events_ = 0;
  std::chrono::steady_clock::time_point last_idle_;

  std::mutex turn_mutex_;  // guards
  std::condition_variable told_;
  std::condition_variable job_ended_;
  std::deque<queued_job> jobs_;
  bool job_runs_ = false;
  bool job_ran_ = false;  // since one looked
  bool one_leads_ = false;
  bool one_looks_ = false;
  bool called_ = false;  // whoever stands by has to lead
};

}  // namespace troupe::network
