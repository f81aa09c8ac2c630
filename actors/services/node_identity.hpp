// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/nodes/node_runtime_test.cpp, tests/actors/networks_test.cpp
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include <troupe/actors/settings.hpp>
#include <troupe/messages/messages.hpp>

namespace troupe::services {

/// The name, the id and the address of a node. Any thread may use node_identity.
class node_identity {
 public:
  /// Gives the node a random id.
  explicit node_identity(const settings& options);

  node_id id() const noexcept { return self_.id; }
  const std::string& name() const noexcept { return self_.name; }
  /// The port that the node listens at; 0 until listens_at().
  std::uint16_t port() const noexcept { return port_; }
  void listens_at(std::uint16_t port) noexcept { port_ = port; }
  /// The node as a member of the cluster.
  member as_member() const { return {self_.name, self_.id, self_.host, port_, self_.formats, self_.devices}; }
  std::int64_t uptime_ns() const noexcept;

 private:
  const std::int64_t started_ns_;
  const member self_;  // without the port
  std::atomic<std::uint16_t> port_{0};
};

}  // namespace troupe::services
