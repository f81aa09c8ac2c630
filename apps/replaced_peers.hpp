// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/apps/cluster_view_test.cpp, tests/apps/status_command_test.cpp
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include <troupe/messages/messages.hpp>

namespace troupe::apps {

inline bool is_same_node(const member& a, const member& b) {
  return a.name == b.name || (a.host == b.host && a.port == b.port);
}

/// Removes the peers that are gone and were started again: peers with the name or address of node `self`, of a peer that is not gone,
/// or of a peer that is gone since a later time. `seen` gives the peer_status of an element.
template <class Element, class Seen>
void remove_replaced(std::vector<Element>& all, const member& self, Seen seen) {
  const auto replaces = [&](const peer_status& one, const peer_status& other) {
    return &one != &other && is_same_node(one.who, other.who) && (!one.gone || one.up || one.since_ns < other.since_ns);
  };
  std::vector<bool> is_replaced;
  for (const auto& each : all) {
    const peer_status& peer = seen(each);
    const bool is_gone = !peer.up && peer.gone;
    is_replaced.push_back(
      is_gone && (is_same_node(self, peer.who) ||
                  std::any_of(all.begin(), all.end(), [&](const auto& other) { return replaces(seen(other), peer); })));
  }
  std::size_t i = 0;
  std::erase_if(all, [&](const auto&) { return is_replaced[i++]; });
}

}  // namespace troupe::apps
