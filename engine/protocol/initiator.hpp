// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include <boost/container/small_vector.hpp>

#include <troupe/engine/protocol/burst_share.hpp>
#include <troupe/messages/errors.hpp>
#include <troupe/messages/ids.hpp>
#include <troupe/messages/weight_share.hpp>

namespace troupe::protocol {

/// What the initiator does in a distributed pass: decides when the pass is complete, when to look for unused sends, and when to
/// abort the pass.
///
/// The whole weight is back at the initiator when no message and no burst of the pass is left (weight throwing, see
/// weight_throwing.hpp). If as many nodes are settled as have begun at that moment, the pass is complete. If not, some send
/// waits for a gradient that will never come. The initiator then starts a discovery. The initiator asks this node to which
/// recvs the roots of the pass lead. For each recv that is found, the initiator asks the node that sent the tensors to which
/// recvs this send leads, and so on. The search goes wherever gradients go, so it reaches all nodes that have begun. Each
/// answer says whether the node is settled. All sends that the discovery does not reach are pruned. A pass whose results are
/// all used needs no discovery.
///   IN-1  the pass completes exactly once. The pass succeeds only if the weight is whole and all nodes that began are settled.
///   IN-2  the first failure wins. The pass completes with that failure once every node that was asked to abort has answered,
///         is down or has run out of time.
///   IN-3  one discovery is enough. After the discovery the initiator sends a prune message to every unsettled node that the
///         discovery has reached.
///   IN-4  in fast mode nothing is pruned: a pass with an unused send fails as soon as everything else is done. The discovery
///         then only finds the nodes on which sends wait, for the text of the error.
///   IN-5  an abort reaches all nodes that have begun: each answer names the nodes to which gradients were sent, and the
///         initiator asks these nodes to abort too.
class initiator {
 public:
  /// `here`: this node. `participants`: the nodes known to have joined the context, this node included. `prunes`: false in fast
  /// mode (IN-4).
  initiator(node_id here, std::set<node_id> participants, bool prunes = true);

  /// Ask the participant on this node to which recvs the roots lead, then call found() with the answer.
  struct walk_roots {};
  /// Ask node `who` to which recvs `sends` lead, then call found() with the answer.
  struct ask_discover {
    node_id who;
    std::vector<message_id> sends;
  };
  /// Tell node `who` which of its sends will get gradients.
  struct send_prune {
    node_id who;
    std::vector<message_id> live;
    weight_share carried;
  };
  /// Ask node `who` to abort, then call aborted() with the answer.
  struct ask_abort {
    node_id who;
  };
  /// Call deadline_passed() when the time for the answers to aborts is up.
  struct await_aborts {};
  /// Fast mode: these nodes have sends that get no gradient. Call failed() with a text that names them.
  struct name_unused {
    std::vector<node_id> nodes;
  };
  /// The pass is over: result() says how.
  struct complete {
    std::vector<node_id> not_done;  // if the pass ran out of time: the nodes that have not said that they are done with it
  };
  using effect = std::variant<walk_roots, ask_discover, send_prune, ask_abort, await_aborts, name_unused, complete>;
  /// The effects of an event, which the caller carries out in this order. A request to the node `here` goes to the participant
  /// on this node.
  using effects = boost::container::small_vector<effect, 1>;

  effects quiet(weight_share carried);
  /// An answer of node `from` to walk_roots or to one ask_discover. `settled`: no send of that node waits.
  effects found(node_id from, const std::vector<message_id>& recvs, bool settled);
  effects failed(node_id from, errc code, std::string text);
  /// Node `from` has answered an abort, and has named the nodes to which it had sent gradients. `settled`: node `from` has no
  /// part in the pass, or was done with the pass.
  effects aborted(node_id from, const std::vector<node_id>& sent_to, bool settled);
  /// Node `who` is down. The pass fails if that node takes part. The initiator expects no more answers from that node.
  effects peer_down(node_id who, std::string text);
  /// The time of the pass is up. During an abort: the time for the answers is up.
  effects deadline_passed(std::string text);

  /// Empty while the pass runs and after success.
  const std::optional<failure>& result() const noexcept { return failure_; }
  bool is_complete() const noexcept { return phase_ == phase::complete; }
  bool aborting() const noexcept { return phase_ == phase::aborting; }

  /// All state that decisions depend on: two initiators of equal state behave alike. Used by explorations in tests.
  auto state() const noexcept {
    return std::tie(participants_, home_, phase_, live_, unsettled_, asked_, down_, abort_asked_, abort_open_, failure_,
                    prunes_, late_);
  }

 private:
  enum class phase { running, discovering, pruned, aborting, complete };
  effects after_found();
  effects finish();
  effects fail_with(errc code, std::string text);
  void abort(node_id who, effects& result);

  node_id here_;
  std::set<node_id> participants_;
  bool prunes_;
  weight_share home_;
  phase phase_ = phase::running;
  std::map<node_id, std::set<message_id>> live_;
  // In a discovery: the nodes that have said that a send waits. In an abort: the asked nodes that have not said that they are
  // settled.
  std::set<node_id> unsettled_;
  std::size_t asked_ = 0;  // walks and discoveries that are not answered yet
  bool late_ = false;      // the pass has run out of time
  std::set<node_id> down_;
  std::set<node_id> abort_asked_;
  std::set<node_id> abort_open_;
  std::optional<failure> failure_;
};

}  // namespace troupe::protocol
