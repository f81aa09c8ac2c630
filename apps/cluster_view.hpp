// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/apps/cluster_view_test.cpp, tests/apps/status_rates_test.cpp, tests/apps/status_command_test.cpp
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <troupe/actors/status_client.hpp>
#include <troupe/messages/messages.hpp>

#include "apps/charlm/figures.hpp"
#include "apps/ready_line.hpp"

namespace troupe::apps {

/// The number with commas between groups of three digits: "24,512".
inline std::string number(std::uint64_t value) { return charlm::grouped(std::to_string(value)); }

/// The address of a member as a text: "127.0.0.1:4001".
inline std::string address_of(const member& who) { return ready_line{who.name, who.host, who.port}.address(); }

inline std::string state_of(const peer_status& x) {
  if (!x.up && x.transport == not_reached) return not_reached;
  return x.up ? "up" : x.gone ? "gone" : "unreachable";
}

/// Returns the text; "-" if it is empty.
inline std::string or_dash(const std::string& text) { return text.empty() ? "-" : text; }

inline bool is_same_node(const member& a, const member& b) {
  return a.name == b.name || (a.host == b.host && a.port == b.port);
}

/// Removes from `all` each peer that is gone and was replaced, as by a restart. A peer with the same name or address replaces
/// it: `self`, a peer that is not gone, or one that went down later. `seen` returns the peer_status of an element.
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

/// What a node did per second, computed from two statuses of the node.
///   RA-1  no rate is negative. Sums over peers fall when the node forgets a peer that went down long ago; the rate is then 0.
struct status_rates {
  double calls_run = 0;
  double functions_run = 0;
  double bytes_sent = 0;      // of tensors, to all peers
  double bytes_received = 0;  // of tensors, from all peers: in messages, or read from the memory of a peer

  /// Empty if the node was restarted between the two statuses, or if no time passed between them.
  static std::optional<status_rates> between(const node_status& before, const node_status& after);
};

/// A number of bytes as a text, in the largest unit (a power of 1000) that the number reaches: "1.2 MB" or "512 B".
std::string bytes_text(double bytes);

/// The status of all nodes of a cluster, as a table for a person or as JSON for a program.
///   CV-1  a node is listed once. A node that is gone is left out if another node with its name or address is up, is
///         unreachable, or went down later.
///   CV-2  a node that is not up, or that is up but did not answer, is listed with the reason.
class cluster_view {
 public:
  struct row {
    member who;
    std::string state;      // "up", "unreachable" or "gone"
    double for_s = 0;       // seconds that the node has been in this state
    std::string transport;  // how the node that was asked reaches this node; empty for the node that was asked
    std::string problem;    // why the node is not up or did not answer
    std::optional<node_status> status;
    std::optional<status_rates> rates;
  };

  /// `before`: an earlier status that the same node gave. Rates are computed only with `before`.
  explicit cluster_view(cluster_status now, const cluster_status* before = nullptr);

  /// The rows. The first row is the node that was asked. The others are sorted by state, then by name.
  const std::vector<row>& rows() const noexcept { return rows_; }

  /// The rows as a table for a person. Its lines have at most 160 characters with usual names and figures.
  std::string table() const;
  nlohmann::ordered_json json() const;

 private:
  std::vector<row> rows_;
};

}  // namespace troupe::apps
