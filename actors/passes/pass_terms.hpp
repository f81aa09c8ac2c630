// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/orderings_test.cpp, tests/actors/higher_order_test.cpp
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <set>

#include <caf/allowed_unsafe_message_type.hpp>

#include <troupe/actors/contracts/context.hpp>
#include <troupe/actors/logging/node_log.hpp>
#include <troupe/actors/passes/burst.hpp>
#include <troupe/actors/passes/context_record.hpp>
#include <troupe/actors/passes/pass_outcome.hpp>
#include <troupe/actors/support/deadline_clock.hpp>
#include <troupe/engine/protocol/participant.hpp>
#include <troupe/messages/messages.hpp>

namespace troupe::passes {

/// The facts that a graph task knows of its pass from the start.
struct pass_terms : shared_terms {
  protocol::call_tree_position_ptr position;
  std::unique_ptr<pass_task> task;
  std::optional<protocol::participant> participant;  // moves to the graph task
  // Set on the initiator only:
  std::set<node_id> participants;  // nodes that are known to be in the context
  std::chrono::milliseconds deadline{0};
  support::deadline_clock::alarm
    expiry;  // alarm for the deadline; set if start_pass runs the first burst and the node has a network
  bool fast = false;
};
using pass_terms_ptr = std::shared_ptr<pass_terms>;

/// The terms of a pass on this node. `leads`: whether this node has started the pass.
pass_terms_ptr make_terms(const contracts::context_record_ptr& record, context_record::start start, bool keep_graph,
                          bool create_graph, bool leads = false);

/// The terms of a pass that a user starts on this node.
pass_terms_ptr make_terms(pass_outcome::used_services here, const contracts::context_record_ptr& record,
                          contracts::backward_job& job, context_record::start start);

/// The error for a second pass while a pass runs.
error pass_is_running();

/// Refuses to start a pass: completes the future of the pass with the error `why`, and writes a line to the log.
void refuse_pass(const logging::node_log& log, const context_record& record, contracts::backward_job& job, const error& why);

/// Makes a burst of the pass. `terms.task` moves into the burst.
contracts::burst_ptr make_burst(pass_terms& terms, burst::kind what, protocol::burst_share share);

}  // namespace troupe::passes

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::passes::pass_terms_ptr)
