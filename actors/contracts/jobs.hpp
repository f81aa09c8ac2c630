// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/message_id.hpp>

#include <troupe/actors/contracts/send_credits.hpp>
#include <troupe/actors/function_table.hpp>
#include <troupe/actors/future.hpp>
#include <troupe/actors/support/answer_way.hpp>
#include <troupe/actors/support/deadline_clock.hpp>
#include <troupe/actors/tracing/operator_log.hpp>
#include <troupe/devices/staging.hpp>
#include <troupe/engine/gradient_table.hpp>
#include <troupe/engine/graph_task.hpp>
#include <troupe/engine/send_backward.hpp>
#include <troupe/engine/torch_compat.hpp>
#include <troupe/messages/messages.hpp>

namespace troupe::passes {

class context_record;

}  // namespace troupe::passes

/// Structs that the actors of one node hand each other by pointer. These structs never leave the process.
namespace troupe::contracts {

using context_record_ptr = std::shared_ptr<passes::context_record>;
using gradients_ptr = std::shared_ptr<const engine::gradient_table>;

/// The error for a message whose elements could not be copied from their device. `staged_on`: see devices::staged::devices.
error not_copied(const std::exception_ptr& failure, const std::vector<c10::Device>& staged_on);

/// A call that this node makes. The destructor fails a call that has not ended.
struct outgoing_call {
  node_id to;
  std::uint64_t number = 0;  // the number among the calls of this node; 0 until `gateway` has the call
  std::string label;         // the name for texts: see label_of
  call_request request;
  engine::pointer_to<engine::send_backward> send;  // null if no tensor of the call requires grad
  context_record_ptr record;                       // of the context that the call joins, if any
  std::chrono::milliseconds deadline{0};
  bool late = false;                     // whether elements of its tensors came from a device after the call was made
  std::optional<error> not_copied;       // why the elements could not be copied
  std::optional<caf::message_id> asked;  // the request to the other node, if it waits for an answer
  support::deadline_clock::alarm expiry;
  std::int64_t begin_ns = 0;
  send_credits::credit credit;               // bytes that the call holds until it ends
  tracing::span_collector_ptr spans;         // collector of the call that made this call, if that call is profiled
  std::size_t slot = 0;                      // with profiling, outside any call: a number that no other running call has
  bool ended = false;                        // answered or failed
  std::shared_ptr<void> use;                 // see peer_traffic::hold
  std::shared_ptr<autograd_message> answer;  // the answer without its tensors; says how the tensors of the reply join the graph
  future<call_reply> reply;

  /// Whether an alarm is set for the deadline of the call.
  bool is_limited() const { return expiry != support::deadline_clock::alarm{}; }

  ~outgoing_call() {
    if (!ended) reply.set_error(error(errc::stopping, "call of '" + label + "' failed: this node has stopped"));
  }
};
using outgoing_call_ptr = std::shared_ptr<outgoing_call>;

/// A call of another node, to run on this node.
struct incoming_call {
  call_request request;
  context_record_ptr record;  // of the context that the call joins, if any
  gradients_ptr gradients;
  support::answer_way answer;
  std::int64_t arrived_ns = 0;            // steady clock; the deadline of the request counts from this time
  std::uint64_t number = 0;               // calls that arrive later have a higher number
  std::shared_ptr<void> use;              // see peer_traffic::hold
  support::deadline_clock::alarm expiry;  // the alarm at the deadline, while the call has not started
  call_result result;
  std::uint64_t answer_bytes = 0;  // the bytes of `result`
  devices::staged arriving;        // elements of the result that are still on their way from a device
  std::optional<error> failure;
  caf::strong_actor_ptr worker;  // the worker that has run the call, if the worker is free now
};
using incoming_call_ptr = std::shared_ptr<incoming_call>;

/// The last completed pass of a context and the failed passes, as the node that opened the context knows them.
struct pass_history {
  pass_number completed;
  std::vector<pass_number> failed;
};
using pass_history_ptr = std::shared_ptr<const pass_history>;

/// The send of a message that a user's own actor sends to another node, and the recordings made before the message.
struct outgoing_joint {
  context_id context;
  node_id to;
  engine::send_source send;
  std::vector<engine::recording> recordings;
};
using outgoing_joint_ptr = std::shared_ptr<outgoing_joint>;

/// Gradients that `gateway` sends, because their elements leave in pieces or come late from a device.
struct outgoing_gradients {
  node_id to;
  propagate_gradients message;
  std::vector<c10::Device> devices = {};  // of the gradients on this node; empty if all are on the CPU
  send_credits::credit credit = {};       // given back when the other node has taken the message; empty for small messages
};
using outgoing_gradients_ptr = std::shared_ptr<outgoing_gradients>;

/// A request for the gradients of a context. The destructor fails a request that was not answered.
struct gradients_wish {
  future<gradients_ptr> result;
  ~gradients_wish() { result.set_error(error(errc::stopping, "the context was released, or its node has stopped")); }
};
using gradients_wish_ptr = std::shared_ptr<gradients_wish>;

/// A request of peer::send_capacity(), which is fulfilled once few bytes wait to leave for the peer. The destructor fails a
/// request that was not fulfilled.
struct capacity_wish {
  node_id to;
  std::int64_t until_ns = 0;                    // steady clock: the deadline
  bool has_asked = false;                       // whether this node has asked CAF's writer to answer after the messages that
                                                // were sent before
  support::deadline_clock::alarm overdue = {};  // set until CAF's writer has answered
  future<done> result;

  ~capacity_wish() { result.set_error(error(errc::stopping, "this node has stopped")); }
};
using capacity_wish_ptr = std::shared_ptr<capacity_wish>;

}  // namespace troupe::contracts

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::contracts::gradients_ptr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::contracts::pass_history_ptr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::contracts::outgoing_call_ptr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::contracts::incoming_call_ptr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::contracts::outgoing_joint_ptr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::contracts::outgoing_gradients_ptr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::contracts::gradients_wish_ptr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::contracts::capacity_wish_ptr)
