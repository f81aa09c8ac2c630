// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/threads_of_calls_test.cpp, tests/actors/waiting_calls_test.cpp, tests/actors/slow_readers_test.cpp
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include <troupe/actors/calls/answers_under_way.hpp>
#include <troupe/actors/calls/call_pool.hpp>
#include <troupe/actors/calls/call_workers.hpp>
#include <troupe/actors/calls/waiting_calls.hpp>
#include <troupe/actors/contracts/membership.hpp>
#include <troupe/actors/support/desk_actor.hpp>
#include <troupe/actors/transfers/transfer_desk.hpp>

namespace troupe::calls {

/// Time until the deadline of the call.
std::chrono::nanoseconds time_left(const contracts::incoming_call& job);

/// The desk of the `gateway` actor for the calls of other nodes: which wait, which worker runs which, and when the answers leave.
class worker_desk {
 public:
  worker_desk(support::desk_actor self, services::node_services& here, call_workers& workers,
              transfers::transfer_desk& transfers);

  /// Why the call may not wait here; empty if it may. Notes the bytes of the call in `job`.
  std::string why_no_room(contracts::incoming_call& job) const;
  /// Keeps the call until its context or its gradients are there.
  void hold(const contracts::incoming_call_ptr& job);
  /// Ends hold(). False if the call was refused meanwhile.
  bool end_hold(const contracts::incoming_call_ptr& job) { return waiting_.erase(job); }
  /// Runs the call once a worker is free.
  void run(const contracts::incoming_call_ptr& job);
  /// To be called when a worker has returned the call. The worker is free then, if the call names it.
  void done(const contracts::incoming_call_ptr& job);
  /// To be called when the deadline of a call has passed. No effect if the call has started.
  void deadline_passed(const contracts::incoming_call_ptr& job);

  void is_free(const contracts::call_worker_actor& worker, std::size_t depth);
  void is_blocked();
  void is_resumed() { pool_.resumed(); }
  void end_idle();

  void context_closed(const context_id& id);
  void went_down(const contracts::peer_down& news);
  /// The number of calls that have not started.
  std::size_t waiting() const noexcept { return waiting_.size(); }

 private:
  using pool = call_pool<contracts::call_worker_actor, contracts::incoming_call_ptr>;

  void answer(const contracts::incoming_call_ptr& job);
  void start_calls();
  contracts::call_worker_actor worker_for(pool::start& next);
  void answer_left(node_id caller, std::uint64_t bytes);
  void limit(const contracts::incoming_call_ptr& job) const;
  void refuse(const contracts::incoming_call_ptr& job, const error& why);
  void tick_later() const;

  support::desk_actor self_;
  services::node_services& here_;
  call_workers& workers_;
  transfers::transfer_desk& transfers_;
  pool pool_;
  waiting_calls waiting_;
  answers_under_way answers_;
  bool will_tick_ = false;  // whether a tick_atom is on its way
};

}  // namespace troupe::calls
