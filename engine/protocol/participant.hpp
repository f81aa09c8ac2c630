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

/// Where a walk over this node's functions starts, in a discovery.
enum class walk_from { roots, sends };

/// One node's part in one distributed pass. The participant only decides, and never touches a tensor, a clock or a socket.
/// Functions run in bursts on a worker. While a burst is away, events that arrive wait here. In a discovery, a walk finds the
/// recvs that functions of this node lead to.
///   PA-1  weight that came in is in the purse, with the burst, on its way to a peer, or reported to the initiator. Weight is
///         never lost and never made.
///   PA-2  a send is delivered at most once, and never after it was pruned.
///   PA-3  after a failure or an abort no burst starts. An abort is answered as soon as no burst is away.
///   PA-4  a purse names this node as settled only if none of this node's sends waits. If none waits, the purse that leaves at
///         the end of the node's last burst names this node.
///   PA-5  a walk starts only when no burst is away. The initiator may ask for a walk before that, because the weight of a
///         burst may reach the initiator before the burst comes back to the participant.
class participant {
 public:
  /// `sends`: all sends of the context on this node so far.
  participant(node_id here, std::set<message_id> sends);

  /// What the shell (the actor around the participant) has to do after an event.
  struct steps {
    bool start_burst = false;            // call take_burst() and run the burst
    std::optional<purse> quiet;          // report participant_quiet with this purse
    std::optional<std::string> failure;  // report participant_failed with this text
    bool answer_abort = false;           // answer every abort_pass received so far
    std::optional<walk_from> walk;       // walk over the task's functions, then call burst_ended(...) with an empty purse
    std::vector<message_id> drop;        // sends that get no gradient: drop them before the burst
  };

  /// What the participant gives to a burst.
  struct burst_terms {
    purse carried;
    bool settles = false;  // no send is waiting: the node is settled if the burst leaves nothing to run
  };

  /// The pass starts on this node: the roots that the user gave are ready to run. `all`: the whole weight.
  steps start(purse all);
  /// Gradients for a send of this node have come. Unless the steps have a `failure`, deliver the gradients before the next
  /// burst.
  steps gradients(message_id send, purse carried);
  /// The discovery has ended. Of the sends that still wait, only those in `live` will get gradients.
  steps prune(const std::set<message_id>& live, purse carried);
  /// The burst came back with the rest of its purse.
  steps burst_ended(purse left);
  /// The burst came back with an error.
  steps burst_failed();
  steps abort();

  /// The initiator asks, in a discovery, which recvs the roots or some sends lead to.
  steps walk(walk_from where);

  /// To be called once for each `start_burst`.
  burst_terms take_burst();

  bool away() const noexcept { return away_; }
  bool over() const noexcept { return over_; }
  std::size_t waiting() const noexcept { return waiting_.size(); }

  /// All state that decisions depend on: two participants of equal state behave alike. Used by explorations in tests.
  auto state() const noexcept { return std::tie(waiting_, purse_, away_, work_, walk_, over_, abort_asked_); }

 private:
  steps set_out();

  node_id here_;
  std::set<message_id> sends_;
  std::set<message_id> waiting_;
  purse purse_;
  bool away_ = false;
  bool work_ = false;  // something arrived since the last burst began
  std::optional<walk_from> walk_;
  bool over_ = false;  // failed or aborted
  bool abort_asked_ = false;
};

}  // namespace troupe::protocol
