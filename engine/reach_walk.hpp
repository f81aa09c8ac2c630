// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <vector>

#include <troupe/engine/plan.hpp>
#include <troupe/messages/ids.hpp>

namespace troupe::engine {

/// Finds the recvs that given vertices lead to, without recursion. All calls of one reach_walk visit each vertex once.
class reach_walk {
 public:
  /// The messages of those recvs that no earlier call has found. `from` may contain plan::none.
  std::vector<message_id> operator()(const plan& graph, std::vector<std::uint32_t> from);

  /// Whether there was a walk that has not visited the vertex.
  bool has_passed_by(std::uint32_t vertex) const { return !visited_.empty() && !visited_[vertex]; }

 private:
  std::vector<bool> visited_;
};

}  // namespace troupe::engine
