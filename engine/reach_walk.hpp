// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <vector>

#include <troupe/engine/plan.hpp>
#include <troupe/messages/ids.hpp>

namespace troupe::engine {

/// Finds the recvs that vertices lead to, without recursion, and each function once over all calls.
class reach_walk {
 public:
  /// The messages of the recvs not found before. `from` may hold plan::none.
  std::vector<message_id> operator()(const plan& graph, std::vector<std::uint32_t> from);

 private:
  std::vector<bool> visited_;
};

}  // namespace troupe::engine
