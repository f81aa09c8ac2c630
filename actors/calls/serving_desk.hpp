// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/serving_test.cpp, tests/actors/nodes/gateway_actor_test.cpp, tests/actors/orderings_test.cpp
#pragma once

#include <cstdint>
#include <string>

#include <caf/error.hpp>

#include <troupe/actors/calls/peer_rights.hpp>
#include <troupe/actors/calls/worker_desk.hpp>
#include <troupe/actors/contracts/gateway.hpp>
#include <troupe/actors/passes/routing_desk.hpp>
#include <troupe/actors/services/uses.hpp>
#include <troupe/actors/support/desk_actor.hpp>
#include <troupe/actors/support/open_requests.hpp>

namespace troupe::calls {

/// The desk of the `gateway` actor where the calls of other nodes arrive. A call waits here for its context and for the
/// gradients of earlier passes. Then the call goes to worker_desk.
class serving_desk {
 public:
  using used_services =
    uses<with_options, with_log, with_self, with_counts, with_directory, with_clock, with_network, with_deadlines>;

  serving_desk(support::desk_actor self, const used_services& here, const contracts::membership_actor& membership,
               const peer_rights& rights, passes::routing_desk& contexts, worker_desk& workers)
      : self_(self), here_(here), membership_(membership), rights_(rights), contexts_(contexts), workers_(workers) {}

  caf::typed_response_promise<call_result> serve(call_request& request);
  void went_down(node_id who);

 private:
  using call = contracts::incoming_call_ptr;

  std::string why_not_taken(const call& job);
  passes::open_context context_of(const contracts::incoming_call& job);
  void find_context(const call& job);
  void find_context_when_met(node_id who, const call& job);
  void find_gradients(const call& job, const passes::open_context& context);
  bool believes(const call_request& request, const passes::context_record& record) const;
  void learn(const passes::open_context& context, const contracts::pass_history& known);
  void ask_opener(const call& job, const passes::open_context& context);
  void hear_nothing_of_passes(const call& job, const passes::open_context& context, const caf::error& why);
  void gather(const call& job, const passes::open_context& context);
  template <class Reason>
  void refuse(const call& job, const Reason& why);
  std::chrono::milliseconds patience_for_question(const contracts::incoming_call& job) const;

  support::desk_actor self_;
  const used_services here_;
  const contracts::membership_actor membership_;
  const peer_rights& rights_;
  passes::routing_desk& contexts_;
  worker_desk& workers_;
  support::open_requests asked_;  // questions to openers
  std::uint64_t last_ = 0;        // number of the newest call that came
};

}  // namespace troupe::calls
