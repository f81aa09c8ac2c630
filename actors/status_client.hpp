// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include <troupe/messages/messages.hpp>

namespace troupe {

/// Asks a node what it does, from outside the cluster: the client is no peer, and the node's peers do not hear of it.
///   SL-1  every question ends by its deadline, whatever listens at the address.
class status_client {
 public:
  /// Connects; throws troupe::error: unknown_peer where nobody listens, deadline_passed where nobody answers, refused where it
  /// is no node.
  status_client(std::string host, std::uint16_t port, std::chrono::milliseconds deadline);
  ~status_client();
  status_client(const status_client&) = delete;
  status_client& operator=(const status_client&) = delete;

  /// Throws troupe::error (deadline_passed: it is frozen or gone; refused: a node that does not know the question).
  node_status ask(std::chrono::milliseconds deadline);

 private:
  struct connection;
  std::string where_;
  std::unique_ptr<connection> connection_;
};

}  // namespace troupe
