// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/orderings_test.cpp, tests/actors/failures_test.cpp, tests/actors/returning_peers_test.cpp
#pragma once

#include <unordered_map>

#include <troupe/actors/calls/calls_made.hpp>
#include <troupe/actors/calls/outgoing_calls.hpp>
#include <troupe/actors/contracts/gateway.hpp>
#include <troupe/actors/passes/open_contexts.hpp>
#include <troupe/actors/services/uses.hpp>
#include <troupe/actors/support/desk_actor.hpp>
#include <troupe/actors/transfers/transfer_desk.hpp>

namespace troupe::calls {

/// The desk of the `gateway` actor for the calls that this node makes, and for their answers. Its core is calls_made. The
/// destructor fails the calls that have no answer.
class calling_desk {
 public:
  using used_services = uses<with_directory, with_deadlines>;

  calling_desk(support::desk_actor self, used_services here, const contracts::membership_actor& membership,
               const passes::open_contexts& contexts, outgoing_calls& calls, transfers::transfer_desk& transfers)
      : self_(self), here_(here), membership_(membership), contexts_(contexts), calls_(calls), transfers_(transfers) {}
  ~calling_desk();
  calling_desk(const calling_desk&) = delete;
  calling_desk& operator=(const calling_desk&) = delete;

  void call(const contracts::outgoing_call_ptr& job);
  void deadline_passed(const contracts::outgoing_call_ptr& job);
  /// To be called when the elements of the call's tensors have been copied from their devices, or could not be copied.
  void arrived(const contracts::outgoing_call_ptr& job);
  void context_closed(const context_id& id);
  void went_down(const contracts::peer_down& news);

 private:
  using job_ptr = contracts::outgoing_call_ptr;

  void on(const calls_made::event& what, call_result* answer = nullptr);
  void carry_out(const job_ptr& job, const calls_made::meet& what);
  void carry_out(const job_ptr& job, const calls_made::limit& what);
  void carry_out(const job_ptr& job, const calls_made::ship& what);
  void carry_out(const job_ptr& job, const calls_made::ask& what);
  void carry_out(const job_ptr& job, const calls_made::fail& what);
  void carry_out(const job_ptr& job, const calls_made::call_off& what);
  void carry_out(const job_ptr&, const calls_made::forget& what) { jobs_.erase(what.call); }
  void finish(contracts::outgoing_call& job, call_result& answer);

  support::desk_actor self_;
  const used_services here_;
  const contracts::membership_actor membership_;
  const passes::open_contexts& contexts_;
  outgoing_calls& calls_;
  transfers::transfer_desk& transfers_;
  calls_made core_;
  std::unordered_map<calls_made::number, job_ptr> jobs_;  // the calls that `core_` has not forgotten
  calls_made::number last_ = 0;                           // number of the newest call
};

}  // namespace troupe::calls
