// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/orderings_test.cpp, tests/actors/failures_test.cpp, tests/actors/returning_peers_test.cpp
#pragma once

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <troupe/actors/calls/bulky_calls.hpp>
#include <troupe/actors/calls/late_calls.hpp>
#include <troupe/actors/calls/outgoing_calls.hpp>
#include <troupe/actors/contracts/gateway.hpp>
#include <troupe/actors/passes/open_contexts.hpp>
#include <troupe/actors/support/desk_actor.hpp>
#include <troupe/actors/transfers/transfer_desk.hpp>

namespace troupe::calls {

/// The desk of the `gateway` actor for the calls that this node makes, and for their answers. The destructor fails the calls that have no
/// answer.
class calling_desk {
 public:
  calling_desk(support::desk_actor self, services::node_services& here, const contracts::membership_actor& membership,
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
  using set = std::unordered_set<contracts::outgoing_call_ptr>;

  void begin(const contracts::outgoing_call_ptr& job);
  void meet_first(const contracts::outgoing_call_ptr& job);
  void limit(const contracts::outgoing_call_ptr& job) const;
  void leave(const std::vector<contracts::outgoing_call_ptr>& ready);
  void leave(const contracts::outgoing_call_ptr& job);
  void request(const contracts::outgoing_call_ptr& job);
  void answered(const contracts::outgoing_call_ptr& job, call_result& result);
  bool is_open(const contracts::outgoing_call_ptr& job) const;
  bool ended(const contracts::outgoing_call_ptr& job);
  void fail(const contracts::outgoing_call_ptr& job, const error& reason);
  void request_all(const std::vector<contracts::outgoing_call_ptr>& those);

  support::desk_actor self_;
  services::node_services& here_;
  const contracts::membership_actor membership_;
  const passes::open_contexts& contexts_;
  outgoing_calls& calls_;
  transfers::transfer_desk& transfers_;
  std::unordered_map<context_id, set> open_;  // calls without an answer yet
  late_calls late_;
  bulky_calls bulky_;
  std::unordered_map<node_id, int> meeting_;     // number of calls that wait until the node is connected
  std::unordered_map<object_id, int> shipping_;  // number of calls on the object whose tensors leave ahead
};

}  // namespace troupe::calls
