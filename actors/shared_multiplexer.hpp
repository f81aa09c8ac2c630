// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <caf/intrusive_ptr.hpp>
#include <caf/io/network/default_multiplexer.hpp>
#include <caf/resumable.hpp>

namespace caf {
class actor_system;
}

namespace troupe {

class tcp_scribe;

/// CAF's multiplexer with two threads, of which one leads at a time: it polls the sockets and resumes the brokers. What a
/// message asks for, if that is likely to be short, the thread that read it does itself, once it has stopped leading, and then
/// leads again and sends what came of it: no other thread is woken between question and answer. The second thread stands by, and
/// leads when the first is away for too long.
///   SM-1  one thread leads at a time, and it alone resumes brokers.
///   SM-2  while none leads, one looks every `tick`, and leads if none did since it looked before; at once, when another thread
///         posts something or the job waits for a future. What the job posts is for its own thread, when it leads again.
///   SM-3  what is posted is resumed once, or released with the multiplexer.
///   SM-4  jobs run one at a time, on a thread that does not lead; those that still wait behind one when the other thread leads
///         go elsewhere.
///   SM-5  who leads sleeps only while nothing is posted, and is woken by who posts then.
///   SM-6  who leads sleeps only while every scribe that it watches may. One without traffic for `watched_for`, or that others came
///         after, is no longer watched.
class shared_multiplexer final : public caf::io::network::default_multiplexer {
 public:
  static constexpr std::chrono::microseconds tick{400};
  /// How long who leads polls before it sleeps, once so many events came closer to each other than that.
  static constexpr std::chrono::microseconds awake_for{1000};
  static constexpr int enough_close_events = 8;
  static constexpr std::chrono::milliseconds watched_for{100};
  static constexpr std::size_t most_watched = 256;
  /// So often in a row the sockets are not asked, while there is something in memory.
  static constexpr int most_unpolled = 8;

  /// A short piece of work, and how it is done if this is not the place. What they throw goes to stderr.
  struct job {
    std::function<void()> run;
    std::function<void()> send_elsewhere;
  };

  explicit shared_multiplexer(caf::actor_system* system);
  ~shared_multiplexer() override;

  void exec_later(caf::resumable* what) override;
  void run() override;
  caf::io::scribe_ptr new_scribe(caf::io::network::native_socket socket) override;
  caf::expected<caf::io::scribe_ptr> new_tcp_scribe(const std::string& host, std::uint16_t port) override;

  /// Whether connections on this machine go on in shared memory.
  bool shares_memory() const { return shares_memory_; }
  /// Looks at the scribe in each step, as it has traffic in shared memory. Of who leads, as is the next.
  void watch(tcp_scribe* scribe);
  /// Looks at it no more.
  void forget(tcp_scribe* scribe);

  /// Has the scribe catch up once what is under way is done. Of who leads.
  void catch_up_soon(tcp_scribe* scribe);

  /// Runs the job on this thread once it no longer leads. False if this thread can't: nothing happened.
  bool run_soon(job work);
  /// Returns when no job runs; from now on none is taken. Not from a job.
  void finish_jobs();

  /// What to do when nothing else is due, once for each time it was asked for. To be set before that.
  void set_idle_work(std::function<void()> work);
  void ask_for_idle_work() noexcept { idle_work_due_.store(true, std::memory_order_release); }

 private:
  class job_scope;
  struct watched {
    caf::intrusive_ptr<tcp_scribe> scribe;  // null once forgotten
    std::chrono::steady_clock::time_point had_traffic;
  };

  void serve();
  bool take() noexcept;
  void release() noexcept;
  std::optional<job> lead();
  bool stand_by();
  void wake_other();
  void run_jobs(std::optional<job> next);
  void send_stuck_jobs();
  void step();
  bool resume_posted();
  bool has_posts();
  void note_event();
  void catch_up();
  void sleep();
  bool look_at_watched();
  bool watched_may_sleep();
  void drop_one_if_quiet();

  const bool shares_memory_;
  std::atomic<bool> led_{false};
  std::atomic<std::uint64_t> times_led_{0};
  std::atomic<bool> over_{false};
  std::atomic<bool> idle_work_due_{false};
  std::function<void()> idle_work_;

  std::mutex post_mutex_;  // guards
  std::vector<caf::resumable*> posted_;
  bool asleep_ = false;

  // Of who leads:
  std::vector<caf::resumable*> own_posted_;
  std::vector<caf::resumable*> due_;
  std::vector<caf::intrusive_ptr<tcp_scribe>> behind_;
  std::vector<caf::intrusive_ptr<tcp_scribe>> catching_up_;
  std::vector<watched> watched_;
  std::vector<caf::intrusive_ptr<tcp_scribe>> forgotten_;  // who forgets may be one's own last
  std::size_t next_watched_ = 0;
  int unpolled_ = 0;
  std::deque<job> new_jobs_;
  std::chrono::steady_clock::time_point last_event_;
  int close_events_ = 0;

  std::mutex turn_mutex_;  // guards
  std::condition_variable told_;
  std::deque<job> jobs_;
  bool jobs_are_over_ = false;
  bool jobs_wait_ = false;  // for who leads to stop
  bool jobs_leave_ = false;
  bool job_runs_ = false;
  bool job_ran_ = false;  // since one looked
  bool one_leads_ = false;
  bool one_looks_ = false;
  bool called_ = false;  // whoever stands by has to lead
};

}  // namespace troupe
