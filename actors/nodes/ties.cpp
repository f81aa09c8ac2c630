// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/nodes/ties.hpp>

#include <algorithm>

#include <troupe/actors/passes/context_record.hpp>

namespace troupe::nodes {

bool share_context_or_object(const node_services& services, node_id peer) {
  if (!services.objects.tether()->held_of(peer).empty() || services.objects.serves(peer)) return true;
  const auto contexts = services.contexts.all();
  return std::any_of(contexts.begin(), contexts.end(),
                     [&](const auto& each) { return each.record->id().node == peer || each.record->members.has_peer(peer); });
}

}  // namespace troupe::nodes
