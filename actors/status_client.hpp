// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/status_test.cpp
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <troupe/actors/settings.hpp>
#include <troupe/messages/messages.hpp>

namespace troupe {

/// A peer of the node that was asked (cluster_status::asked).
struct cluster_member {
  peer_status seen;                   // how the asked node sees the peer
  std::optional<node_status> status;  // the peer's outline of itself; empty if the peer is not up or did not answer
  std::string problem;                // why `status` is empty
};

/// The answer of a node about its cluster: its own status, and its peers.
struct cluster_status {
  node_status asked;
  std::vector<cluster_member> others;
};

/// Asks a node for its status from outside the cluster. The client is no peer: other nodes do not hear of the client.
///   SL-1  every request ends by its deadline, whatever program listens at the address.
class status_client {
 public:
  /// Connects to the node. `how`: only the setting `insecure` counts. Throws troupe::error: unknown_peer if no program listens
  /// at the address, deadline_passed if the program does not answer, refused if the program is no node, or this process may not
  /// talk to it.
  status_client(std::string host, std::uint16_t port, std::chrono::milliseconds deadline, const settings& how = {});
  ~status_client();
  status_client(const status_client&) = delete;
  status_client& operator=(const status_client&) = delete;

  /// The status of the node. A node that listens on all addresses of its host appears with the host that was asked. Throws
  /// troupe::error: deadline_passed if the node hangs or is gone, refused if the node does not know this request.
  node_status ask(std::chrono::milliseconds deadline);

  /// The status of the node, and the outlines of all its peers (see node_status). The node itself asks its peers, many at the
  /// same time. So the client needs to reach only this node. The answer comes by the deadline even if no peer answers. A peer
  /// that does not answer takes no time from the others. Throws troupe::error as ask() does.
  cluster_status ask_cluster(std::chrono::milliseconds deadline);

 private:
  struct connection;
  std::string host_;
  std::string where_;
  std::unique_ptr<connection> connection_;
};

}  // namespace troupe
