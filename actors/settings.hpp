// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace troupe {

/// What a node is started with. Times in milliseconds.
struct settings {
  std::string name = "node";
  std::string host = "127.0.0.1";              // address to listen on; loopback unless told otherwise
  std::uint16_t port = 0;                      // 0: any free port
  std::vector<std::string> join;               // "host:port" of nodes to join at start
  std::size_t workers = 1;                     // remote calls that run at once (more when calls block on calls)
  std::chrono::milliseconds deadline{60'000};  // of calls, passes and lookups that name none
  std::chrono::milliseconds heartbeat{250};    // between two signs of life; a peer is down after 3 missed ones
  bool trace = false;                          // record spans from the start

  settings() = default;
  /// Reads `--name=`, `--host=`, `--port=`, `--join=` (may repeat), `--workers=`, `--deadline-ms=`, `--heartbeat-ms=`,
  /// `--trace`; throws troupe::error for anything else.
  settings(int argc, char** argv);
};

}  // namespace troupe
