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

/// Begins and ends the calls that this node makes. Between its begin and its end a call belongs to the `gateway` actor. Any
/// thread may use outgoing_calls.
///   OG-1  the first finish() or fail() of a call completes the future of the call; later ones do nothing.
class outgoing_calls {
 public:
  outgoing_calls(services::node_services& here, passes::open_contexts& contexts) : here_(here), contexts_(contexts) {}

  /// Sends the call when the elements of all its tensors are there. Later calls may leave earlier, except calls on the same
  /// object.
  void send(contracts::outgoing_call_ptr job, devices::staged arriving = {});
  void finish(contracts::outgoing_call& job, call_result& result);
  void fail(contracts::outgoing_call& job, const error& reason);

 private:
  std::string description(const contracts::outgoing_call& job) const;
  void take_spans(contracts::outgoing_call& job, const std::string& from_callee);

  services::node_services& here_;
  passes::open_contexts& contexts_;
  std::mutex mutex_;             // guards slots_
  std::set<std::size_t> slots_;  // numbers of running calls that are profiled
};

}  // namespace troupe::calls
