// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace caf {
class actor_system_config;
}

namespace troupe {

/// What carries a node's messages: the network threads, connections and scheduler of troupe, or those of CAF as CAF brings them,
/// which are slower. Nodes of both kinds work together.
enum class network_kind { troupe, caf };

/// How much a line of the log matters, from the least to the most; `off` is above all lines.
enum class severity : std::uint8_t { debug, info, warn, error, off };

/// What a node is started with. Times in milliseconds.
struct settings {
  std::string name = "node";
  std::string host = "127.0.0.1";               // address to listen on; loopback unless told otherwise
  std::uint16_t port = 0;                       // 0: any free port
  std::vector<std::string> join;                // "host:port" of nodes to join at start
  std::size_t workers = 1;                      // remote calls that run at once (more when calls block on calls)
  std::chrono::milliseconds deadline{60'000};   // of calls, passes and lookups that name none
  std::chrono::milliseconds heartbeat{250};     // between two signs of life; a peer is down after 3 missed ones
  bool direct_memory = true;                    // large tensors between processes of one machine: out of the other's memory
  bool shared_memory = true;                    // messages between processes of one machine: not by TCP
  network_kind network = network_kind::troupe;  // caf: TCP only, and `shared_memory` has no effect
  severity log_level = severity::warn;          // the least that the node logs
  std::string log_file;                         // to append the log to; empty: the log goes to stderr
  bool trace = false;                           // record spans from the start
  bool profile = false;                         // and what calls and passes of this node run, operators included, wherever
  /// Called with the configuration of the node's actor system, before that starts: to add the message types of your own actors.
  std::function<void(caf::actor_system_config&)> configure;

  settings() = default;
  /// Reads `--name=`, `--host=`, `--port=`, `--join=` (may repeat), `--workers=`, `--deadline-ms=`, `--heartbeat-ms=`,
  /// `--no-direct-memory`, `--no-shared-memory`, `--network=` (troupe or caf), `--log-level=` (debug, info, warn, error or off),
  /// `--log-file=`, `--trace`, `--profile`; a value may also be the next argument. Throws troupe::error (misuse) for anything else.
  settings(int argc, char** argv);
};

/// The kind that `--network` names: "troupe" or "caf". Throws troupe::error (misuse) for anything else.
network_kind network_named(const std::string& name);

/// The level that `--log-level` names. Throws troupe::error (misuse) for a name that is none.
severity severity_named(const std::string& name);
/// "debug", "info", "warn", "error" or "off".
constexpr const char* to_text(severity level) noexcept {
  constexpr const char* names[] = {"debug", "info", "warn", "error", "off"};
  return names[static_cast<int>(level)];
}

/// Throws troupe::error (misuse) that names the setting, its value and what is expected.
void check(const settings& options);

/// Takes "host:port" apart ("[::1]:4000" for IPv6); throws troupe::error (misuse) when it is not that.
std::pair<std::string, std::uint16_t> parse_address(const std::string& text);

/// 127.0.0.0/8, ::1 or "localhost".
bool is_loopback(const std::string& host);

/// Whether a node may have this name: 1 to 64 of A-Z a-z 0-9 . _ -, not beginning with a dot (names become file names).
bool valid_node_name(const std::string& name) noexcept;

}  // namespace troupe
