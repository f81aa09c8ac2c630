// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <future>

namespace troupe::network {

/// What network threads serve: the sockets of a node, and what is posted to its brokers. Who leads calls what follows.
class event_loop {
 public:
  virtual ~event_loop() = default;

  /// Becomes readable when there are events. Any thread may ask.
  virtual int poll_handle() const = 0;
  virtual void handle_events() = 0;
  /// Those that are there now; false if there were none.
  virtual bool handle_posts() = 0;
  /// After one of its connections was looked at.
  virtual void settle() = 0;
  virtual void do_idle_work() = 0;
  /// It has no sockets any more.
  virtual bool ended() const = 0;
  /// It will not be served any more.
  virtual void left() = 0;

 private:
  friend class network_threads;
  std::promise<void> gone_;
  bool takes_jobs_ = true;
  int jobs_ = 0;  // of it that run or wait
  std::atomic<bool> idle_work_due_{false};
};

}  // namespace troupe::network
