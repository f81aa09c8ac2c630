// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include <troupe/messages/ids.hpp>

namespace troupe::passes {

/// The contexts of other nodes that were released here, so that a call that was on its way opens none of them again.
///   RC-1  of what was added the newest are known; what was not added is not.
///   RC-2  contexts of a node that follow on each other take the room of one, and there are never more than `limit` such
///         stretches: the oldest of the node goes first.
class released_contexts {
 public:
  explicit released_contexts(std::size_t limit) : limit_(limit) {}

  void add(const context_id& id);
  bool contains(const context_id& id) const;
  /// The node is down, and will be another one when it returns.
  void forget(node_id node);
  std::size_t stretches() const noexcept { return last_.size(); }

 private:
  std::size_t limit_;
  std::map<context_id, std::uint64_t> last_;  // the first of a stretch, and the number of its last
};

}  // namespace troupe::passes
