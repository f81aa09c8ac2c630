// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/engine/protocol/participant_test.cpp
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include <boost/container/flat_set.hpp>

#include <troupe/engine/protocol/purse.hpp>
#include <troupe/messages/errors.hpp>
#include <troupe/messages/ids.hpp>
#include <troupe/messages/purse.hpp>

namespace troupe::protocol {

/// Why a pass fails.
struct failure {
  errc code = errc::none;
  std::string text;
};

/// A node's place in the tree of calls of a context. A node joins a context by the first call that comes. The caller is the
/// parent, and the node is a child of its caller. The node that opened the context is the root, and starts all passes.
struct call_tree_place {
  node_id parent;  // empty on the root and on the children of the root: these report to the root in any case
  boost::container::flat_set<node_id> children;  // empty on the root
};
using call_tree_place_ptr = std::shared_ptr<const call_tree_place>;

/// What a burst takes along, and what the burst has given away.
///   BS-1  the burst's messages, and what is left in the burst, together carry what the burst took along (PU-1). The last
///         message carries all that is left.
///   BS-2  only the last message to the parent answers the parent, and only if no child has to answer this node: the subtree
///         of this node is done then.
struct burst_share {
  purse carried;
  bool settles = false;       // no send is waiting: the node is settled if the burst leaves nothing to run
  std::uint32_t answers = 0;  // how many messages of the parent the burst may answer; 0 if a child has to answer first
  call_tree_place_ptr place;
  std::map<node_id, std::uint32_t> sent = {};  // number of messages with gradients to each node
  bool answered = false;                       // whether a message of the burst has answered the parent
  splitter parts = {};                         // of `carried`

  /// What a message takes along.
  struct part {
    purse carried;
    std::uint32_t answers = 0;
  };
  /// For a message with gradients to node `to`. `more`: other messages will follow.
  part give(node_id to, bool more);
};

}  // namespace troupe::protocol
