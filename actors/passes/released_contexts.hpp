// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include <troupe/messages/ids.hpp>

namespace troupe::passes {

/// Remembers the contexts of other nodes that this node has released, so that a late call does not open such a context again.
///   RC-1  contains() is true for the newest contexts that were added, and false for a context that was not added.
///   RC-2  consecutive contexts of a node (a stretch) take the memory of one context, and there are never more than `limit`
///         stretches. To free memory, add() drops the oldest stretch of the same node. If that is the new stretch, add() drops
///         the oldest stretch of the node with the lowest id instead.
class released_contexts {
 public:
  explicit released_contexts(std::size_t limit) : limit_(limit) {}

  void add(const context_id& id);
  bool contains(const context_id& id) const;
  /// Forgets the contexts of a node that is gone: a node that is started again has a new id.
  void forget(node_id node);
  std::size_t stretches() const noexcept { return last_.size(); }

 private:
  std::size_t limit_;
  std::map<context_id, std::uint64_t> last_;  // first context of each stretch, and number of its last context
};

}  // namespace troupe::passes
