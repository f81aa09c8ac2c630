// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/passes/context_record_test.cpp
#pragma once

#include <memory>
#include <vector>

#include <boost/container/flat_map.hpp>

#include <troupe/engine/protocol/burst_share.hpp>
#include <troupe/messages/ids.hpp>
#include <troupe/messages/mutex.hpp>

namespace troupe::passes {

/// The nodes of a context, as far as this node knows them: which have joined, which take part, and the position of this node
/// in the tree of calls. Any thread may use context_members. context_members holds promise CR-4 of context_record.
class context_members {
 public:
  context_members(context_id of, node_id here) : opener_(of.node), here_(here) {}

  /// Whether this node has opened the context.
  bool is_opener() const noexcept { return opener_ == here_; }

  /// Notes that this node has called node `who` in the context.
  void called(node_id who);
  /// Adds nodes that take part in the context. The answer to a call named these nodes.
  void joined(const std::vector<node_id>& nodes);
  /// Adds a node that has announced itself (context_joined). takes_part() does not count this node, because no other
  /// node has confirmed it.
  void announced(node_id who);
  void left(node_id who);
  /// The other nodes that have joined, ascending.
  std::vector<node_id> peers() const;
  bool has_peer(node_id who) const;
  /// Whether the node takes part in the context, as far as this node knows: this node has called the node, the answer to a call
  /// has named it, or the node has called this one.
  bool takes_part(node_id who) const;

  /// Notes that the node has called this node in the context. From then on the node takes part, but does not become a peer. The
  /// first caller is the parent of this node in the tree of calls.
  void called_by(node_id who);
  /// Whether this node has joined the context by a call of node `caller`.
  bool joined_by(node_id caller) const;
  /// Notes that node `child` has joined the context by a call of this node: it is a child of this node in the tree of calls.
  void adopt(node_id child);
  /// The position of this node in the tree of calls. Null on the node that opened the context, and before the first call comes.
  protocol::call_tree_position_ptr position() const;

 private:
  /// What is known of a node.
  struct knowledge {
    bool is_peer = false;     // another node that has joined the context
    bool takes_part = false;  // see takes_part(); kept for a node that has left, because it may come back
  };

  const node_id opener_;
  const node_id here_;
  mutable checked_mutex mutex_;
  // A flat map needs little memory: most contexts have few entries, and a program may have many contexts.
  boost::container::flat_map<node_id, knowledge> nodes_ TROUPE_GUARDED_BY(mutex_);
  std::shared_ptr<protocol::call_tree_position> position_ TROUPE_GUARDED_BY(mutex_);
};

}  // namespace troupe::passes
