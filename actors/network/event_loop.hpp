// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <functional>
#include <future>

namespace troupe::network {

/// A short piece of work (`run`). `send_elsewhere` is called if the network threads can't run it soon, and hands it to another
/// thread. Exceptions of both functions go to stderr.
struct network_job {
  std::function<void()> run;
  std::function<void()> send_elsewhere;
  bool takes_turns = false;  // waits behind short jobs, because another thread could not run it beside them either
};

/// The event loop of a node: its sockets, and the work that is posted to its brokers (posts). The network threads serve it.
/// Only the leader thread (see network_threads) calls the functions, except poll_handle().
class event_loop {
 public:
  virtual ~event_loop() = default;

  /// A descriptor that becomes readable when there are events. Any thread may ask for it.
  virtual int poll_handle() const = 0;
  virtual void handle_events() = 0;
  /// Handles the posts that are there now; false if there were none.
  virtual bool handle_posts() = 0;
  /// Called after the shared memory of one of the loop's connections was polled.
  virtual void settle() = 0;
  virtual void do_idle_work() = 0;
  /// Called once after note_later(), when the sockets of all loops have had their turn.
  virtual void go_on() = 0;
  /// Whether the loop has no sockets any more.
  virtual bool ended() const = 0;
  /// Called last, when the network threads stop serving the loop.
  virtual void left() = 0;

 private:
  friend class network_threads;
  std::promise<void> gone_;
  bool takes_jobs_ = true;
  int jobs_ = 0;  // jobs of this loop that run or wait
  std::atomic<bool> idle_work_due_{false};
};

}  // namespace troupe::network
