// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/engine/protocol/participant_test.cpp
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include <boost/container/flat_set.hpp>

#include <troupe/engine/protocol/weight_throwing.hpp>
#include <troupe/messages/errors.hpp>
#include <troupe/messages/ids.hpp>
#include <troupe/messages/weight_share.hpp>

namespace troupe::protocol {

/// Why a pass fails.
struct failure {
  errc code = errc::none;
  std::string text;
};

/// A node's position in the tree of calls of a context. A node joins a context by the first call of the context that it gets.
/// The caller is the parent, and the node is a child of its caller. The node that opened the context is the root, and starts
/// all passes.
struct call_tree_position {
  node_id parent;                                // empty on the root and on its children, which report to the root in any case
  boost::container::flat_set<node_id> children;  // empty on the root
};
using call_tree_position_ptr = std::shared_ptr<const call_tree_position>;

/// The weight that a burst carries, and the shares that the burst has given to its messages.
///   BS-1  the shares of the burst's messages and the rest in the burst add up to the weight with which the burst began (WG-1).
///         The last message carries the whole rest.
///   BS-2  a message answers the parent only if it is the last message of the burst, goes to the parent, and no child has to
///         answer this node. Then the subtree of this node has nothing to run for now.
struct burst_share {
  weight_share carried;
  bool settles = false;       // no send is waiting: the node is settled if the burst leaves nothing to run
  std::uint32_t answers = 0;  // how many messages of the parent the burst may answer; 0 if a child has to answer first
  call_tree_position_ptr position;
  std::map<node_id, std::uint32_t> sent = {};  // number of messages with gradients to each node
  bool answered = false;                       // whether a message of the burst has answered the parent
  splitter given = {};                         // from `carried`

  /// The share that one message takes along.
  struct message_share {
    weight_share carried;
    std::uint32_t answers = 0;
  };
  /// Takes a share for a message with gradients to node `to`. `more`: whether other messages will follow.
  message_share give(node_id to, bool more);
};

}  // namespace troupe::protocol
