// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <troupe/messages/ids.hpp>
#include <troupe/messages/purse.hpp>

namespace troupe::protocol {

/// Where a walk over this node's functions, for a discovery, starts.
enum class walk_from { roots, sends };

/// One node's part in one distributed pass: decides, and never touches a tensor, a clock or a socket. The functions run in
/// bursts; while a burst is away with a worker, what arrives waits here.
///   PA-1  weight that came in is in the purse, with the burst, on its way to a peer or reported: never lost, never made.
///   PA-2  a send is delivered at most once, and none after it was pruned.
///   PA-3  after a failure or an abort no burst starts, and an abort is answered once no burst is away.
///   PA-4  the node is named settled exactly when none of its sends waits, and its last burst holds that name.
///   PA-5  a walk asked for while a burst is away waits for it: the burst's weight may be home before the burst is.
class participant {
 public:
  /// `sends`: all that the context has sent from this node so far.
  participant(node_id here, std::set<message_id> sends);

  /// What the shell has to do after an event.
  struct steps {
    bool start_burst = false;            // take_burst() and run it
    std::optional<purse> quiet;          // report participant_quiet with it
    std::optional<std::string> failure;  // report participant_failed
    bool answer_abort = false;           // answer every abort_pass asked so far
    std::optional<walk_from> walk;       // the task goes away to be walked over; burst_ended with an empty purse brings it back
    std::vector<message_id> drop;        // sends that get no gradient, before the burst
  };

  /// What a burst takes along.
  struct burst_terms {
    purse carried;
    bool settles = false;  // no send is waiting: when nothing is left to run the node is settled
  };

  /// The pass starts here: the real roots are ready.
  steps start(purse all);
  /// Gradients for a send of this node. Without `failure` they are to be delivered before the next burst.
  steps gradients(message_id send, purse carried);
  /// Discovery has ended: of the sends still waiting only `live` will get gradients.
  steps prune(const std::set<message_id>& live, purse carried);
  /// The burst came back with what is left of its purse.
  steps burst_ended(purse left);
  /// The burst came back with an error.
  steps burst_failed();
  steps abort();

  /// The initiator asks, for its discovery, which recvs the roots or some sends lead to.
  steps walk(walk_from where);

  /// Called once for each `start_burst`.
  burst_terms take_burst();

  bool away() const noexcept { return away_; }
  bool over() const noexcept { return over_; }
  std::size_t waiting() const noexcept { return waiting_.size(); }

  /// All it decides by: two of equal state go on alike. For explorations.
  auto state() const noexcept { return std::tie(waiting_, purse_, away_, work_, walk_, over_, abort_asked_); }

 private:
  steps set_out();

  node_id here_;
  std::set<message_id> sends_;
  std::set<message_id> waiting_;
  purse purse_;
  bool away_ = false;
  bool work_ = false;  // something arrived since the last burst set out
  std::optional<walk_from> walk_;
  bool over_ = false;  // failed or aborted
  bool abort_asked_ = false;
};

}  // namespace troupe::protocol
