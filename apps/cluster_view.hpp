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

/// "24,512".
inline std::string number(std::uint64_t value) { return charlm::grouped(std::to_string(value)); }

/// "127.0.0.1:4001".
inline std::string address_of(const member& who) { return ready_line{who.name, who.host, who.port}.address(); }

inline std::string state_of(const peer_status& x) {
  if (!x.up && x.transport == not_reached) return not_reached;
  return x.up ? "up" : x.gone ? "gone" : "unreachable";
}

/// A text, or "-" in the place of an empty one.
inline std::string or_dash(const std::string& text) { return text.empty() ? "-" : text; }

inline bool is_same_node(const member& a, const member& b) {
  return a.name == b.name || (a.host == b.host && a.port == b.port);
}

/// Removes peers that are gone and were replaced: node `self`, a peer that is not gone, or a peer that went later has their
/// name or address. `seen` gives the peer_status of an element.
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

/// Rates per second of a node, computed from two of its answers.
///   RA-1  no rate is negative. (Sums over peers fall when the node forgets a peer that went down long ago.)
struct status_rates {
  double calls_run = 0;
  double functions_run = 0;
  double bytes_sent = 0;      // of tensors, to all peers
  double bytes_received = 0;  // of tensors, from all peers: in messages, and read out of their memory

  /// Empty if the node was restarted, or if no time has passed between the two answers.
  static std::optional<status_rates> between(const node_status& before, const node_status& after);
};

/// A count of bytes in the largest unit (of powers of 1000) that it fills: "1.2 MB" or "512 B".
std::string bytes_text(double bytes);

/// The nodes of a cluster, as a person or a program wants to see them.
///   CV-1  a node is listed once: a node that is gone is left out if another node of its name or address is up, is unreachable,
///         or went later.
///   CV-2  a node that is up and did not answer is listed with the reason, and so is a node that is not up.
class cluster_view {
 public:
  struct row {
    member who;
    std::string state;      // "up", "unreachable" or "gone"
    double for_s = 0;       // how long the node has been in this state
    std::string transport;  // how the asked node reaches this node; empty for the asked node itself
    std::string problem;    // why the node is not up or did not answer
    std::optional<node_status> status;
    std::optional<status_rates> rates;
  };

  /// `before`: an earlier answer of the same node, for the rates.
  explicit cluster_view(cluster_status now, const cluster_status* before = nullptr);

  /// The node that was asked is the first one. The others are sorted by state, then by name.
  const std::vector<row>& rows() const noexcept { return rows_; }

  /// Lines of at most 160 characters for usual names and figures.
  std::string table() const;
  nlohmann::ordered_json json() const;

 private:
  std::vector<row> rows_;
};

}  // namespace troupe::apps
