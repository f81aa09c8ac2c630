// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>

#include <troupe/actors/contracts/jobs.hpp>
#include <troupe/actors/contracts/send_credits.hpp>
#include <troupe/actors/services/uses.hpp>
#include <troupe/devices/staging.hpp>
#include <troupe/messages/errors.hpp>
#include <troupe/messages/messages.hpp>
#include <troupe/messages/mutex.hpp>

namespace troupe::passes {

class open_contexts;

}  // namespace troupe::passes

namespace troupe::calls {

/// Begins and ends the calls that this node makes. Between its begin and its end a call belongs to the `gateway` actor. Any
/// thread may use outgoing_calls.
///   OG-1  the first finish() or fail() of a call completes the future of the call; later ones do nothing.
///   OG-2  the calls of one depth to one node have at most settings::send_limit bytes under way, or only one such call is under
///         way (see credit_accounts). send() waits before it would send more. Drops, and calls of a node to itself, do not
///         count.
///   OG-3  calls of one depth on one object arrive in the order in which they were sent. Other calls may overtake each other.
///   OG-4  the error of a failed call has the code of its reason, the name of the node and the text of the reason (FT-1).
class outgoing_calls {
 public:
  using used_services = uses<with_options, with_log, with_self, with_counts, with_directory, with_recorder, with_clock,
                             with_actors, with_is_ending, with_departures, with_outbox>;

  outgoing_calls(const used_services& here, passes::open_contexts& contexts);

  /// Waits until the call may leave (OG-2), at most until its deadline. Sends the call when the elements of all its tensors
  /// have been copied from their devices. Later calls may leave earlier (OG-3).
  void send(contracts::outgoing_call_ptr job, devices::staged arriving = {});
  void finish(contracts::outgoing_call& job, call_result& result);
  void fail(contracts::outgoing_call& job, const error& reason);
  /// For the node's end: each send() that waits returns.
  void stop() { credits_.stop(); }

 private:
  std::optional<error> take_credit(contracts::outgoing_call& job);
  std::string description(const contracts::outgoing_call& job) const;
  void take_spans(contracts::outgoing_call& job, const std::string& from_callee);

  const used_services here_;
  passes::open_contexts& contexts_;
  contracts::send_credits credits_;
  checked_mutex mutex_;
  std::set<std::size_t> slots_ TROUPE_GUARDED_BY(mutex_);  // numbers of running calls that are profiled
};

}  // namespace troupe::calls
