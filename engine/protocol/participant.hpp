// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include <boost/container/small_vector.hpp>

#include <troupe/engine/protocol/burst_share.hpp>
#include <troupe/messages/ids.hpp>
#include <troupe/messages/weight_share.hpp>

namespace troupe::protocol {

/// Where a walk over this node's functions starts, in a discovery.
enum class walk_from { roots, sends };

/// What one node does in one distributed pass. The participant only decides, and never touches a tensor, a clock or a socket.
/// Functions run in bursts on a worker. In a discovery, a walk on a worker finds the recvs that functions of this node lead to.
/// A burst or a walk is away until the worker gives it back. Meanwhile the participant stores the events that arrive.
///
/// A node that has nothing to run reports that it is quiet, and its weight goes up the tree of calls to the initiator. Before
/// the report, the node waits for the answers of its children, so one report stands for a whole subtree. In a cluster where
/// each node calls a few others, no node gets more than a few reports. A tree has no cycle, so the lowest node that waits gets
/// all its answers.
///   PA-1  weight that the node has got is with the node, with its burst, on its way to a peer, or reported. Weight is never
///         lost and never made.
///   PA-2  a send gets its gradients at most once, and never after it was pruned.
///   PA-3  after a failure or an abort no burst starts. An abort is answered as soon as neither a burst nor a walk is away.
///   PA-4  a node counts itself as settled once, when none of its sends waits. If none waits when the node's last burst ends,
///         the weight that leaves the node then counts the node.
///   PA-5  a walk starts only when no burst is away. The initiator may ask for a walk earlier, because a burst's weight may
///         reach the initiator before the burst comes back.
///   PA-6  a quiet node keeps weight only while a child has not answered all gradients that the node sent to the child. A quiet
///         node whose children have answered has answered its parent. When nothing is left to run and no message is under way,
///         no node keeps weight.
///   PA-7  at most one burst or walk is away at a time. Each comes back with one call of returned() or walked().
class participant {
 public:
  /// Run a burst: deliver the gradients that came since the last burst, then drop the sends in `drops`, which get no
  /// gradients.
  struct run_burst {
    burst_share share;
    std::vector<message_id> drops;
  };
  /// Run a walk: find the recvs to which the roots or these sends lead.
  struct run_walk {
    walk_from where;
    std::vector<message_id> sends;
  };
  /// Make the burst that is away end soon.
  struct stop_burst {};
  /// Report that this node is quiet. Without weight the report only answers the parent.
  struct report_quiet {
    weight_share carried;
    bool to_parent = false;     // whether the report goes to the parent, if it is up; otherwise it goes to the initiator
    std::uint32_t answers = 0;  // how many messages with gradients of the parent are answered so far, in this pass
  };
  /// Tell the initiator that the pass fails.
  struct report_failure {
    failure why;
    bool lacks_name = false;  // the text does not name this node
  };
  /// Answer the oldest calls of discover(): `questions` calls. The first answer lists all recvs, the others list none.
  struct answer_discover {
    std::size_t questions;
    std::vector<message_id> recvs;
  };
  /// Tell the initiator, which is on this node, to which recvs the roots lead.
  struct answer_walk {
    std::vector<message_id> recvs;
  };
  /// Drop the buffers, and answer every abort that has come so far.
  struct answer_abort {
    std::vector<node_id> sent_to;
  };
  /// The initiator can't be reached: tell these nodes, which sent gradients, that the pass fails.
  struct tell_senders {
    std::set<node_id> who;
  };
  /// Hand out the gradients of the leaves; no gradients if the pass is over on this node.
  struct hand_out {};
  /// The participant is done: free everything.
  struct end {};
  using effect = std::variant<run_burst, run_walk, stop_burst, report_quiet, report_failure, answer_discover, answer_walk,
                              answer_abort, tell_senders, hand_out, end>;
  /// The effects of an event, which the caller carries out in this order.
  using effects = boost::container::small_vector<effect, 1>;

  /// Who sent a message, and how many messages of this node the message answers.
  struct sender {
    node_id node;  // empty if this is not known
    std::uint32_t answers = 0;
  };

  /// `sends`: all sends of the context on this node so far. Without `position` the node reports to the initiator. `leads`:
  /// whether this node has started the pass. If it has, only close() ends the participant.
  explicit participant(std::set<message_id> sends, call_tree_position_ptr position = nullptr, bool leads = false);

  /// The pass starts on this node: the roots that the user gave are ready to run. `all`: the whole weight.
  effects start(weight_share all);
  /// Gradients for a send of this node have come, and wait for the next burst. If the participant is over() after the call,
  /// nobody needs these gradients.
  effects gradients(message_id send, weight_share carried, sender from);
  /// A child in the tree of calls reports to this node that the child is quiet.
  effects reported(weight_share carried, sender from);
  /// The discovery has ended. Of the sends that still wait, only those in `live` will get gradients.
  effects prune(const std::set<message_id>& live, weight_share carried);
  /// The burst that was away came back. `why`: why the burst failed, if it did. A walk that failed comes back in this way too,
  /// with an empty share.
  effects returned(burst_share back, std::optional<failure> why = {});
  /// The walk that was away came back. `recvs`: the recvs that it has found.
  effects walked(std::vector<message_id> recvs);
  /// The initiator, which is on this node, asks in a discovery to which recvs the roots lead.
  effects walk_roots();
  /// The initiator asks in a discovery to which recvs these sends lead. Pre: the participant is not over().
  effects discover(const std::vector<message_id>& sends);
  effects abort();
  /// Another node is down. `text`: the error if this node has sent gradients to that node.
  effects peer_down(node_id who, const std::string& text);
  /// Somebody asks for the gradients of the leaves. Answered by the effect hand_out.
  effects gather();
  /// The context is released here, or the pass has failed on its initiator. `reaches_initiator`: whether this node can still
  /// send to the initiator.
  effects close(bool reaches_initiator);

  bool away() const noexcept { return outside_ != outside::nothing; }
  bool over() const noexcept { return phase_ != phase::running; }
  /// Whether the node is done with the pass, and counted as settled.
  bool settled() const noexcept { return settled_; }
  std::size_t waiting() const noexcept { return waiting_.size(); }

  /// All state that decisions depend on: two participants of equal state behave alike. Used by explorations in tests.
  auto state() const noexcept {
    return std::tie(waiting_, weight_, outside_, work_, drops_, asks_roots_, questions_, walk_sends_, walking_, phase_, leads_,
                    aborts_, gathers_, settled_, from_parent_, answered_, children_, sent_to_, heard_from_, down_);
  }

 private:
  enum class outside { nothing, burst, walk };
  enum class phase {
    running,
    over,   // failed or aborted
    closed  // ends when nothing is away
  };
  /// Messages with gradients between this node and a child.
  struct exchange {
    std::uint32_t sent = 0;
    std::uint32_t answered = 0;
    bool is_open() const noexcept { return sent > answered; }
  };

  effects go_on(effects result = {});
  void set_out(effects& result);
  void be_quiet(effects& result);
  void note_answer(sender from);
  void change(node_id child, std::uint32_t sent, std::uint32_t answered);

  std::set<message_id> sends_;
  std::set<message_id> waiting_;
  call_tree_position_ptr position_;
  weight_share weight_;
  phase phase_ = phase::running;
  outside outside_ = outside::nothing;
  bool leads_;                     // this node has started the pass
  bool work_ = false;              // something arrived since the last burst began
  std::vector<message_id> drops_;  // for the next burst
  bool asks_roots_ = false;        // a walk from the roots is due
  std::size_t questions_ = 0;      // calls of discover() that the next walk will answer
  std::vector<message_id> walk_sends_;
  std::size_t walking_ = 0;  // questions that the walk that is away will answer; 0: the walk began at the roots
  bool aborts_ = false;      // an abort waits for its answer
  bool gathers_ = false;     // somebody waits for the gradients of the leaves
  bool settled_ = false;
  std::uint32_t from_parent_ = 0;  // messages with gradients that came from the parent
  std::uint32_t answered_ = 0;     // how many of from_parent_ were answered
  std::map<node_id, exchange> children_;
  std::size_t open_ = 0;  // children that still have to answer messages
  std::set<node_id> sent_to_;
  std::set<node_id> heard_from_;         // nodes that sent gradients to this node
  std::map<node_id, std::string> down_;  // nodes that went down while a burst is away
};

}  // namespace troupe::protocol
