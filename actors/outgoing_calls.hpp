// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <mutex>
#include <set>
#include <string>

#include <troupe/actors/call_jobs.hpp>
#include <troupe/devices/staging.hpp>
#include <troupe/messages/errors.hpp>
#include <troupe/messages/messages.hpp>

namespace troupe {

class node_services;
class open_contexts;

/// Calls that this node makes: how one begins and how it ends. Between the two it is `peer`'s. Any thread may use it.
///   OG-1  of finish() and fail() the first one decides how the call ended, and its future is completed by that one alone.
class outgoing_calls {
 public:
  outgoing_calls(node_services& here, open_contexts& contexts) : here_(here), contexts_(contexts) {}

  /// Sends it; where elements of its tensors are late, once they are there. Calls whose tensors are there leave before it,
  /// but for those on the same object.
  void send(outgoing_call_ptr job, devices::staged arriving = {});
  void finish(outgoing_call& job, call_result& result);
  void fail(outgoing_call& job, const error& reason);

 private:
  void take_spans(outgoing_call& job, const std::string& from_callee);

  node_services& here_;
  open_contexts& contexts_;
  std::mutex mutex_;             // guards
  std::set<std::size_t> slots_;  // of calls under way that are profiled
};

}  // namespace troupe
