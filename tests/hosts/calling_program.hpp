// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "hosts/testbed.hpp"

namespace troupe::hosts {

/// A node on this host that joins, calls these peers and serves (calling_node.cpp).
inline program calling_node(const host& on, const std::string& name, const std::string& listens_at, const std::string& join,
                            std::vector<std::string> peers, const std::vector<std::string>& more = {}) {
  const char* file = std::getenv("TROUPE_CALLING_NODE");
  if (file == nullptr) throw std::runtime_error("set TROUPE_CALLING_NODE to the program hosts_calling_node; ctest does");
  std::vector<std::string> arguments{"--name", name, "--host", listens_at, "--log-level", "info", "--insecure"};
  if (std::find(more.begin(), more.end(), "--port") == more.end()) arguments.insert(arguments.end(), {"--port", "4001"});
  arguments.insert(arguments.end(), more.begin(), more.end());
  if (!join.empty()) arguments.insert(arguments.end(), {"--join", join});
  arguments.push_back("--");
  arguments.insert(arguments.end(), peers.begin(), peers.end());
  return on.start(file, arguments);
}

}  // namespace troupe::hosts
