// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace caf {
class actor_system_config;
}

namespace troupe {

class node;

/// The network code that carries a node's messages. `troupe`: troupe's own network threads, connections and scheduler. `caf`:
/// CAF's network threads, connections and scheduler, which are slower. Nodes of both kinds can talk to each other.
enum class network_kind { troupe, caf };

/// The level of a line of the log, from the least important to the most important. No line has the level `off`: a node with
/// this level logs nothing.
enum class severity : std::uint8_t { debug, info, warn, error, off };

/// The form of a log's lines. `text` is for people. `json`: each line is an object with the strings time, level, node, room and
/// text.
enum class line_format : std::uint8_t { text, json };

/// A device map by names: each entry maps a device of this node to a device of the other node (devices/device_map.hpp).
using device_names = std::map<std::string, std::string>;

/// For how long the end of a node or of a worker_team waits for functions that run: the seconds of the environment variable
/// TORCH_AUTOGRAD_SHUTDOWN_WAIT_LIMIT, as for the threads of libtorch's engine; 10 s without it. Throws troupe::error (misuse)
/// if the variable is no number from 0 to 86,400.
std::chrono::milliseconds stop_limit_of_environment();

/// The settings with which a node starts.
struct settings {
  std::string name = "node";
  std::string host = "127.0.0.1";  // address or host name to listen on
  std::uint16_t port = 0;          // 0: any free port
  /// "host:port" of seeds, the nodes to join at the start. The node is ready once it is connected to one of them. As long as
  /// the node runs, it dials the seeds to which it is not connected. If the node is one of its own seeds, it starts even if no
  /// other seed answers.
  std::vector<std::string> join;
  /// How long the start waits for a seed; 0: for ever. After this time the constructor throws; the error says what was seen at
  /// each seed.
  std::chrono::milliseconds join_wait{30'000};
  std::size_t workers = 1;  // remote calls that may compute at once; calls that wait for other calls do not count
  /// Threads that run large functions of distributed passes on this node, in parallel with the thread of the pass
  /// (worker_team). Unless the number is 0, one more such thread serves each accelerator of the process. 0: the functions of a
  /// pass run on one thread.
  std::size_t pass_workers = 0;
  std::chrono::milliseconds deadline{60'000};      // default deadline of calls, passes and lookups
  std::chrono::milliseconds heartbeat{250};        // time between two heartbeats. A peer is unreachable after 3 unanswered
                                                   // heartbeats, or after 240 while other bytes keep coming from the peer
  std::chrono::milliseconds forget_after{30'000};  // an unreachable peer is gone after this time
  /// For how long node::stop() and the node's destructor wait for calls and passes that still run here.
  std::chrono::milliseconds stop_limit = stop_limit_of_environment();
  /// Calls, bursts of passes and the freeing of memory run on the network thread that read their message, if work of the same
  /// kind took less than this time lately. Longer work goes to another thread: that costs a hand-over, but holds up no other
  /// message. 0: all work goes to other threads.
  std::chrono::microseconds short_work{500};
  std::uint64_t send_limit = std::uint64_t{256} << 20;  // bytes of calls, of answers and of gradients that may be under way to
                                                        // a peer; further ones wait
  /// Bytes of rounding errors that the node may store, for error feedback (wire_format::int8). The errors take as many bytes as
  /// the gradients that this node sends as int8 have before compression. Beyond the limit, the errors that were used longest
  /// ago are dropped.
  std::uint64_t feedback_limit = std::uint64_t{256} << 20;
  bool direct_memory = true;  // large tensors within a machine are read out of the sender's memory; needs `shared_memory`
  bool shared_memory = true;  // messages within a machine go through shared memory, not TCP
  network_kind network = network_kind::troupe;  // with `caf` there is only TCP, and no shared or direct memory
  /// The node's kit, a file that `troupe certs node` made: its key, its certificate and its cluster's authority. With a kit the
  /// node talks only to nodes of its cluster, by TLS 1.3. Needed for a `host` that is not loopback. Empty: no kit; then the
  /// node talks only to programs of its own user on its own machine.
  std::string certificates;
  /// The cluster's list of revoked certificates, a file that `troupe certs revoke` made. The node reads it again when it
  /// changes. Needs `certificates`. Empty: no certificate is revoked.
  std::string revoked;
  /// File that says what the roles of the cluster may do with this node: see docs/operations.md. The node reads it at its
  /// start, and again at node::reload(). Needs `certificates`. Empty: each node of the cluster may do everything but send code
  /// (`allow_scripts`) and name paths (`data_dir`).
  std::string policy;
  /// Lets everybody in who reaches the node's port: nobody has to prove who they are, and nothing is encrypted. Needed for the
  /// network `caf`, which can't check who connects.
  bool insecure = false;
  severity log_level = severity::warn;  // the node logs lines of this level and above
  std::string log_file;                 // file that the log is appended to; empty: stderr
  line_format log_format = line_format::text;
  bool trace = false;    // whether tracing is on from the start
  bool profile = false;  // whether profiling is on from the start: see node::set_profiling
  /// Address or host name by which other nodes reach this node. Empty: `host`. If `host` is 0.0.0.0 or ::, each other node gets
  /// the local address of this node's connection to it.
  std::string advertise;
  /// Folder that other nodes may make this node write to and read from (checkpoints). The node makes the folder. The paths that
  /// other nodes name are below this folder; absolute paths, "..", hidden names and symbolic links are refused. Empty: other
  /// nodes may name no path. A call of the node to itself may then name any path of the process.
  std::string data_dir;
  /// "port" (on loopback; 0: any free one) or "host:port" where the node serves the pages /healthz and /metrics (for
  /// Prometheus) by HTTP. Empty: nowhere.
  std::string metrics;
  /// node::serve() returns when the peer with this name is gone. Empty: there is no such peer.
  std::string until_left;
  /// Called with the node before it joins other nodes, to add functions and module types: the first peer may call them at once.
  std::function<void(node&)> prepare;
  /// Called with the configuration of the node's actor system before that system starts, to add the message types of your own
  /// actors.
  std::function<void(caf::actor_system_config&)> configure;
  /// Whether other nodes may send TorchScript modules (create_script). TorchScript is code: the node runs what they send. With
  /// a `policy`, the policy says which roles may, and `allow_scripts` must be false.
  bool allow_scripts = false;

  /// Whether the caller's autocast (kind of device, dtype) goes with its calls of functions and methods, and with messages of
  /// its own actors. The called function runs under the caller's autocast, and so do calls that the function makes. If false,
  /// functions run without autocast.
  bool carry_autocast = false;
  /// Whether the node warns once for each function when a tensor that requires grad leaves outside any context: the tensor is
  /// detached, and no gradient comes back. Under torch::NoGradGuard the node does not warn.
  bool warn_detached = true;

  /// For each peer, by its name: which devices of the peer get the tensors of this node's devices, in calls to the peer and in
  /// messages of your own actors to it: `device_maps["stage1"] = {{"cuda:0", "cuda:1"}, {"cpu", "cuda:0"}}`. Results come back
  /// by the map in the other direction. A peer without a map gets each tensor on the device that it has here. See docs/gpu.md.
  std::map<std::string, device_names> device_maps;

  settings() = default;
  /// Reads the options of a node, which docs/options.md lists: `--name=stage1 --port=4001 --join=h1:4001`. A value may also be
  /// the next argument. Throws troupe::error (misuse) for anything else.
  settings(int argc, char** argv);
  /// For a program with options of its own: reads the options of a node and takes them out of `argv`, with their values. The
  /// other arguments stay in `argv`, in their order, and `argc` becomes their number. An argument "--" and all arguments after
  /// it stay.
  static settings take(int& argc, char** argv);

 private:
  settings(int& argc, char** argv, bool leave_rest);
};

/// The kind that `--network` names: "troupe" or "caf". Throws troupe::error (misuse) for anything else.
network_kind network_named(const std::string& name);

/// The level that `--log-level` names. Throws troupe::error (misuse) for any other name.
severity severity_named(const std::string& name);
/// The name of the level: "debug", "info", "warn", "error" or "off".
constexpr const char* to_text(severity level) noexcept {
  constexpr const char* names[] = {"debug", "info", "warn", "error", "off"};
  return names[static_cast<int>(level)];
}

/// The form that `--log-format` names: "text" or "json". Throws troupe::error (misuse) for anything else.
line_format line_format_named(const std::string& name);

/// Throws troupe::error (misuse) if a setting is out of range, with its name, its value and what is expected.
void check(const settings& options);

/// Adds the device map of a text "PEER:DEVICE HERE=DEVICE THERE,...", such as "stage1:cuda:0=cuda:1,cpu=cuda:0". Throws
/// troupe::error (misuse) for any other text, and if the peer has a map already.
void add_device_map(settings& to, const std::string& text);

/// Splits "host:port" ("[::1]:4000" for IPv6) into host and port; throws troupe::error (misuse) for any other text.
std::pair<std::string, std::uint16_t> parse_address(const std::string& text);

/// Splits "port" (of 127.0.0.1; 0 is any free one) or "host:port" into host and port; throws troupe::error (misuse) for any
/// other text.
std::pair<std::string, std::uint16_t> parse_page_address(const std::string& text);

/// Whether the host is in 127.0.0.0/8, ::1 or "localhost".
bool is_loopback(const std::string& host);

/// Whether the host is 0.0.0.0 or ::. A node that listens there listens on all addresses of its host.
bool is_wildcard(const std::string& host);

/// Whether the text can be the address that a node gives to other nodes: an IP address that is no wildcard, or a valid host
/// name.
bool may_be_advertised(const std::string& host);

/// Whether a node may have this name: 1 to 64 characters of A-Z a-z 0-9 . _ -, the first no dot. Names of nodes become file
/// names.
bool valid_node_name(const std::string& name) noexcept;

}  // namespace troupe
