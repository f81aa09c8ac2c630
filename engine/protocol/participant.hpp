// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <troupe/engine/protocol/burst_share.hpp>
#include <troupe/messages/ids.hpp>
#include <troupe/messages/purse.hpp>

namespace troupe::protocol {

/// Where a walk over this node's functions starts, in a discovery.
enum class walk_from { roots, sends };

/// One node's part in one distributed pass. The participant only decides, and never touches a tensor, a clock or a socket.
/// Functions run in bursts on a worker. While a burst is away, events that arrive wait here. In a discovery, a walk finds the
/// recvs that functions of this node lead to.
///
/// A node that has nothing to run reports that it is quiet, and its weight goes up the tree of calls to the initiator. A node waits for the
/// answers of its children before that, so one report stands for a whole subtree. In a cluster where each node calls a few others, no
/// node gets more than a few reports.
///   PA-1  weight that came in is in the purse, with the burst, on its way to a peer, or reported. Weight is never lost and never made.
///   PA-2  a send is delivered at most once, and never after it was pruned.
///   PA-3  after a failure or an abort no burst starts. An abort is answered as soon as no burst is away.
///   PA-4  a node counts itself as settled once, when none of its sends waits. If none waits, the purse that leaves at the end of the node's
///         last burst counts the node.
///   PA-5  a walk starts only when no burst is away. The initiator may ask for a walk before that, because the weight of a
///         burst may reach the initiator before the burst comes back to the participant.
///   PA-6  a quiet node keeps weight only while a child to which it sent gradients has not answered all of these. A quiet node whose children
///         have answered has answered its parent. Calls make a tree, so the lowest node that waits gets its answer: when nothing is
///         left to run and no message is under way, no node keeps weight.
class participant {
 public:
  /// `sends`: all sends of the context on this node so far. Without `place` the node reports to the initiator.
  participant(node_id here, std::set<message_id> sends, call_tree_place_ptr place = nullptr);

  /// What a quiet node says. Without weight the report only answers the parent.
  struct report {
    purse carried;
    bool to_parent =
      false;  // the parent takes part in the pass. Otherwise, or if the parent is down, the report goes to the initiator
    std::uint32_t answers = 0;  // how many messages with gradients of the parent are answered, since the pass began
  };

  /// What the shell (the actor around the participant) has to do after an event.
  struct steps {
    bool start_burst = false;            // call take_burst() and run the burst
    std::optional<report> quiet;         // send participant_quiet with this report
    std::optional<std::string> failure;  // report participant_failed with this text
    bool answer_abort = false;           // answer every abort_pass received so far
    std::optional<walk_from> walk;       // walk over the task's functions, then call burst_ended({})
    std::vector<message_id> drop;        // sends that get no gradient: drop them before the burst
  };

  /// Who sent a message, and how many messages of this node the sender answers with it.
  struct sender {
    node_id node;
    std::uint32_t answers = 0;
  };

  /// The pass starts on this node: the roots that the user gave are ready to run. `all`: the whole weight.
  steps start(purse all);
  /// Gradients for a send of this node have come. Unless the steps have a `failure`, deliver the gradients before the next
  /// burst.
  steps gradients(message_id send, purse carried, sender from);
  /// Another node reports that it is quiet, to this node as its parent.
  steps reported(purse carried, sender from);
  /// The discovery has ended. Of the sends that still wait, only those in `live` will get gradients.
  steps prune(const std::set<message_id>& live, purse carried);
  /// The burst came back.
  steps burst_ended(burst_share back);
  /// The burst came back with an error.
  steps burst_failed();
  steps abort();

  /// The initiator asks, in a discovery, which recvs the roots or some sends lead to.
  steps walk(walk_from where);

  /// To be called once for each `start_burst`.
  burst_share take_burst();

  bool away() const noexcept { return away_; }
  bool over() const noexcept { return over_; }
  /// Whether the node is done with the pass, and counted as settled.
  bool settled() const noexcept { return settled_; }
  std::size_t waiting() const noexcept { return waiting_.size(); }

  /// All state that decisions depend on: two participants of equal state behave alike. Used by explorations in tests.
  auto state() const noexcept {
    return std::tie(waiting_, purse_, away_, work_, walk_, over_, abort_asked_, settled_, from_parent_, answered_, children_);
  }

 private:
  /// Messages with gradients between this node and a child.
  struct exchange {
    std::uint32_t sent = 0;
    std::uint32_t answered = 0;
    bool is_open() const noexcept { return sent > answered; }
  };

  steps set_out();
  steps be_quiet();
  void note_answer(sender from);
  void change(node_id child, std::uint32_t sent, std::uint32_t answered);

  node_id here_;
  std::set<message_id> sends_;
  std::set<message_id> waiting_;
  call_tree_place_ptr place_;
  purse purse_;
  bool away_ = false;
  bool work_ = false;  // something arrived since the last burst began
  std::optional<walk_from> walk_;
  bool over_ = false;  // failed or aborted
  bool abort_asked_ = false;
  bool settled_ = false;
  std::uint32_t from_parent_ = 0;  // messages with gradients that came from the parent
  std::uint32_t answered_ = 0;     // of these
  std::map<node_id, exchange> children_;
  std::size_t open_ = 0;  // children that have to answer
};

}  // namespace troupe::protocol
