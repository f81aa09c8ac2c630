// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include <troupe/actors/calls/answers_under_way.hpp>
#include <troupe/actors/calls/bulky_calls.hpp>
#include <troupe/actors/calls/call_pool.hpp>
#include <troupe/actors/calls/late_calls.hpp>
#include <troupe/actors/calls/queued_calls.hpp>
#include <troupe/actors/calls/waiting_calls.hpp>
#include <troupe/actors/contracts/gateway.hpp>
#include <troupe/actors/nodes/node_parts.hpp>
#include <troupe/actors/passes/released_contexts.hpp>
#include <troupe/actors/support/open_requests.hpp>
#include <troupe/actors/transfers/direct_memory.hpp>
#include <troupe/actors/transfers/outgoing_pieces.hpp>
#include <troupe/actors/transfers/piece_window.hpp>

namespace troupe::nodes {

struct gateway_state {
  static inline const char* name = "gateway";

  gateway_state() : pool(1) {}
  ~gateway_state();

  node_parts* parts = nullptr;
  services::node_services* here = nullptr;  // the services of `parts`
  contracts::membership_actor membership;
  passes::released_contexts released{4096};
  std::unordered_map<context_id, std::unordered_set<contracts::outgoing_call_ptr>> calls;  // calls without an answer yet
  calls::call_pool<contracts::call_worker_actor, contracts::incoming_call_ptr> pool;
  calls::waiting_calls waiting;
  std::uint64_t last_arrival = 0;  // number of the newest call that came
  bool will_tick = false;          // whether a tick_atom is on its way
  calls::answers_under_way answers;
  calls::late_calls late;
  calls::bulky_calls bulky;
  std::optional<calls::queued_calls> queued;
  std::unordered_map<node_id, transfers::outgoing_pieces> leaving;
  std::unordered_map<node_id, transfers::piece_window> windows;  // of the pieces in `leaving`
  std::unordered_map<node_id, int> meeting;                      // number of calls that wait until the node is connected
  std::unordered_map<object_id, int> shipping;                   // number of calls on the object in `leaving`
  support::open_requests asked;                                  // requests that carry pieces or offers, or ask for marks
  transfers::direct_memory direct;
  std::uint64_t last_transfer = 0;
};

}  // namespace troupe::nodes
