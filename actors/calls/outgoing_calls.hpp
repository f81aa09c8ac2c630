// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <mutex>
#include <set>
#include <string>

#include <troupe/actors/contracts/jobs.hpp>
#include <troupe/devices/staging.hpp>
#include <troupe/messages/errors.hpp>
#include <troupe/messages/messages.hpp>

namespace troupe::passes {

class open_contexts;

}  // namespace troupe::passes

namespace troupe::services {

class node_services;

}  // namespace troupe::services

namespace troupe::calls {

/// Calls that this node makes: how one begins and how it ends. Between the two it is `peer`'s. Any thread may use it.
///   OG-1  of finish() and fail() the first one decides how the call ended, and its future is completed by that one alone.
class outgoing_calls {
 public:
  outgoing_calls(services::node_services& here, passes::open_contexts& contexts) : here_(here), contexts_(contexts) {}

  /// Sends it; where elements of its tensors are late, once they are there. Calls whose tensors are there leave before it,
  /// but for those on the same object.
  void send(contracts::outgoing_call_ptr job, devices::staged arriving = {});
  void finish(contracts::outgoing_call& job, call_result& result);
  void fail(contracts::outgoing_call& job, const error& reason);

 private:
  void take_spans(contracts::outgoing_call& job, const std::string& from_callee);

  services::node_services& here_;
  passes::open_contexts& contexts_;
  std::mutex mutex_;             // guards
  std::set<std::size_t> slots_;  // of calls under way that are profiled
};

}  // namespace troupe::calls
