// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/threads_of_calls_test.cpp, tests/actors/waiting_calls_test.cpp, tests/actors/slow_readers_test.cpp
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <unordered_map>
#include <vector>

#include <troupe/actors/calls/call_workers.hpp>
#include <troupe/actors/calls/calls_taken.hpp>
#include <troupe/actors/contracts/membership.hpp>
#include <troupe/actors/services/uses.hpp>
#include <troupe/actors/support/desk_actor.hpp>
#include <troupe/actors/transfers/transfer_desk.hpp>

namespace troupe::calls {

/// Time until the deadline of the call.
std::chrono::nanoseconds time_left(const contracts::incoming_call& job);

/// The desk of the `gateway` actor that runs the calls of other nodes. Its core, calls_taken, decides which calls wait, which
/// worker runs which call, and when the answers leave.
class worker_desk {
 public:
  using used_services =
    uses<with_options, with_log, with_self, with_counts, with_directory, with_network, with_deadlines, with_actors, with_times>;

  worker_desk(support::desk_actor self, const used_services& here, call_workers& workers, transfers::transfer_desk& transfers);

  /// Accepts a call that has come. Returns why the call may not wait here; empty if it may.
  std::string take(const contracts::incoming_call_ptr& job);
  /// To be called when the call was refused and does not wait. Forgets the call.
  void drop(const contracts::incoming_call_ptr& job);
  /// Stores the call, which waits until its context or its gradients have come.
  void hold(const contracts::incoming_call_ptr& job) { on(calls_taken::held{job->number}); }
  /// Ends the wait that hold() began. False if the call was refused meanwhile.
  bool end_hold(const contracts::incoming_call_ptr& job) { return !core_.on(calls_taken::wait_over{job->number}).empty(); }
  /// Runs the call once a worker is free.
  void run(const contracts::incoming_call_ptr& job);
  /// To be called when a call of the series has not run (calls_taken::leaves_series). Refuses the call if its context was
  /// released or its caller went down meanwhile.
  void left_series(const contracts::incoming_call_ptr& job);
  /// To be called when a worker has returned the call. The worker is free if the call names it (incoming_call::worker).
  void done(const contracts::incoming_call_ptr& job);
  /// To be called when the deadline of a call has passed. No effect if the call has started.
  void deadline_passed(const contracts::incoming_call_ptr& job);

  void is_free(const contracts::call_worker_actor& worker, std::size_t depth) { on(calls_taken::is_free{worker.id(), depth}); }
  void is_blocked() { on(calls_taken::is_blocked{}); }
  void is_resumed() { on(calls_taken::is_resumed{}); }
  void end_idle() { on(calls_taken::tick{}); }

  void context_closed(const context_id& id);
  void went_down(const contracts::peer_down& news);
  /// The number of calls that have not started.
  std::size_t waiting() const noexcept { return core_.waiting(); }

 private:
  using job_ptr = contracts::incoming_call_ptr;

  void on(const calls_taken::event& what);
  void tell(const calls_taken::event& what);
  void carry_out(const calls_taken::refuse_excess_bytes&) {}  // take() returns the reason
  void carry_out(const calls_taken::go_on&) {}                // end_hold() returns true
  void carry_out(const calls_taken::limit& what);
  void carry_out(const calls_taken::start& what);
  void carry_out(const calls_taken::refuse& what);
  void carry_out(const calls_taken::let_go& what) { workers_.let_go(what.who); }
  void carry_out(const calls_taken::tick_later& what);
  void carry_out(const calls_taken::ask_taken& what);
  void answer(const job_ptr& job);

  support::desk_actor self_;
  const used_services here_;
  call_workers& workers_;
  transfers::transfer_desk& transfers_;
  calls_taken core_;
  std::unordered_map<calls_taken::number, job_ptr> jobs_;  // the calls that have not started
  std::vector<calls_taken::effect> effects_;               // that on() has to carry out, or has carried out
};

}  // namespace troupe::calls
