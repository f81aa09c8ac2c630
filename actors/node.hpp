// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/distributed_pass_test.cpp, tests/actors/contexts_test.cpp, tests/actors/misuse_test.cpp
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <caf/actor_control_block.hpp>

#include <troupe/actors/function_table.hpp>
#include <troupe/actors/future.hpp>
#include <troupe/actors/settings.hpp>
#include <troupe/devices/device_map.hpp>
#include <troupe/messages/attributes.hpp>
#include <troupe/messages/errors.hpp>
#include <troupe/messages/ids.hpp>
#include <troupe/messages/requests.hpp>
#include <troupe/messages/wire_format.hpp>

namespace caf {
class actor_system;
}

namespace troupe::nodes {

class node_runtime;
class node_link;
class node_pages;

}  // namespace troupe::nodes

namespace troupe::objects {

class object_store;

}  // namespace troupe::objects

namespace troupe {

class remote_module;
struct node_status;

/// Another node of the cluster, or this node itself. A `peer` may outlive the node that made it. Once that node has begun to
/// stop, functions that need the node throw troupe::error (stopping), or their futures fail with this error. The same holds for
/// contexts, modules and optimizers.
class peer {
 public:
  peer(node& here, std::string name, node_id id);

  const std::string& name() const noexcept { return name_; }
  node_id id() const noexcept { return id_; }
  /// The node that made this object. Once that node is destroyed, here() throws troupe::error (stopping).
  node& here() const;

  /// Returns a copy of this peer that uses `map` instead of the map of settings::device_maps: for calls of the copy, for
  /// modules that create() of the copy makes, and for join_graphs with the copy. With an empty map each tensor stays on its
  /// device. A call fails if the map does not fit.
  peer with_devices(device_map map) const;
  /// The map that with_devices() has set; null without with_devices().
  const std::shared_ptr<const device_map>& devices() const noexcept { return devices_; }

  /// Runs the registered function on the peer. Inside a troupe::context of the calling thread the call joins that context.
  /// Outside any context the tensors of call and answer are detached, and the node's log warns of those that require grad
  /// (settings::warn_detached). The function runs in the grad mode and the inference mode of the calling thread: under
  /// torch::NoGradGuard it records no graph. The elements of the tensors are read after call() returns: do not change them
  /// until the future is complete. If a node calls itself, the function gets the same tensors, not copies. Throws troupe::error
  /// (unsupported_tensor) for a tensor that can't travel and for a device map that does not fit, before anything is sent. The
  /// future fails with troupe::error (peer_down, deadline_passed, unknown_function, function_failed ...).
  /// `format`: the format in which large float32 tensors travel (see `wire_format`): those of the call, of its answer, of the
  /// gradients of both, and of calls that the function makes. Without `format` the context's format counts; outside a context,
  /// tensors travel exactly.
  future<call_reply> call(std::string function, std::vector<at::Tensor> tensors = {}, attributes values = {},
                          object_id target = {}, std::optional<std::chrono::milliseconds> deadline = {},
                          std::optional<wire_format> format = {}) const;

  /// The actor that the peer published under this name. `caf::actor_cast<my_actor>(...)` turns the result into a handle of the
  /// actor's typed interface. Blocks; throws troupe::error (unknown_function, peer_down ...).
  caf::strong_actor_ptr actor(const std::string& name) const;

  /// For programs that send messages to actors of the peer. CAF stores any number of messages in memory until the peer reads
  /// them; a program that waits for this future limits them. The future completes once CAF has written all messages that the
  /// calling thread sent before send_capacity(), and less than settings::send_limit bytes wait to leave for the peer. Calls and
  /// passes need no send_capacity(): they limit their bytes themselves. With settings::network `caf`, the future does not wait
  /// until bytes leave: it completes once CAF has written the messages into its buffer. Fails with deadline_passed or
  /// peer_down.
  future<done> send_capacity(std::optional<std::chrono::milliseconds> deadline = {}) const;

  /// What the peer does now and has done so far. The peer answers even while all its workers compute. Blocks; throws
  /// troupe::error (peer_down, deadline_passed ...).
  node_status status(std::optional<std::chrono::milliseconds> deadline = {}) const;

  /// Makes a module of the registered type on the peer and returns a handle that owns it. Blocks; throws troupe::error.
  remote_module create(const std::string& type, attributes values = {}) const;

 private:
  friend struct node_access;
  friend class node;
  future<call_reply> ask_for(request asked, std::vector<at::Tensor> tensors = {}, attributes values = {}, object_id target = {},
                             std::optional<std::chrono::milliseconds> deadline = {},
                             std::optional<wire_format> format = {}) const;
  peer(std::shared_ptr<nodes::node_link> here, std::string name, node_id id)
      : here_(std::move(here)), name_(std::move(name)), id_(id) {}

  std::shared_ptr<nodes::node_link> here_;
  std::string name_;
  node_id id_;
  std::shared_ptr<const device_map> devices_ = nullptr;
};

/// A member of the cluster: an actor system with a name, and its actors. Usually a process has one node.
class node {
 public:
  explicit node(settings options);
  /// Makes a node on the actor system `host`, for tests and simulations of many nodes. The node reaches only other nodes on
  /// `host`, and each of them only after introduce(). The gateway of the node runs in the network thread of `host`; functions
  /// and passes run on threads of their own. Throws troupe::error (misuse) if `host` has not loaded caf::io::middleman.
  node(settings options, caf::actor_system& host);
  ~node();  // NOLINT(bugprone-exception-escape)
  node(const node&) = delete;
  node& operator=(const node&) = delete;

  const std::string& name() const noexcept;
  node_id id() const noexcept;
  /// The name of node `who`, or its id as a text if this node has not heard of it.
  std::string name_of(node_id who) const;
  const settings& options() const noexcept;
  /// The port that the node listens on.
  std::uint16_t port() const noexcept;

  /// The port of the pages /healthz and /metrics (settings::metrics); 0 without them.
  std::uint16_t metrics_port() const noexcept;

  /// The path of a file below the node's data folder (settings::data_dir), for functions that get a path from another node.
  /// Throws troupe::error (refused) if the path leads out of the folder or through a symbolic link, and if there is no data
  /// folder. Exception: without a data folder, data_path() returns `path` unchanged in a call of the node to itself. Give no
  /// other user the right to write to the folder: data_path() does not notice a link that is put there later.
  std::string data_path(const std::string& path) const;

  /// The functions of this node that other nodes may call.
  function_table& functions() noexcept;

  /// The actor system of the node, for your own actors. settings::configure adds their message types. A thread that makes an
  /// actor of this system, a caf::scoped_actor too, has to end before the node, or to call
  /// caf::logger::set_current_actor_system(nullptr): CAF stores a reference to the system's logger in the thread, and the end
  /// of the system waits until the thread drops this reference.
  caf::actor_system& system() noexcept;

  /// Lets other nodes find the actor by this name (peer::actor). The node ends the actor when the node stops.
  void publish(std::string name, const caf::strong_actor_ptr& actor);

  /// The modules and optimizers that live on this node.
  objects::object_store& objects() noexcept;

  /// Connects to the node at host:port and returns the name of that node. Blocks until the deadline at most; throws
  /// troupe::error.
  std::string join(const std::string& host, std::uint16_t port, std::optional<std::chrono::milliseconds> deadline = {});

  /// The node with this name. Waits until the node is known, at most until the deadline; throws troupe::error (unknown_peer). A
  /// continuation (future::then) can't wait: in a continuation peer() finds only nodes that are known already.
  troupe::peer peer(const std::string& name, std::optional<std::chrono::milliseconds> deadline = {});

  /// This node as a peer of itself.
  troupe::peer self();

  /// What this node does now and has done so far: contexts, passes, calls, functions, and the traffic with each peer. `troupe
  /// status` shows this status of a node in another process.
  node_status status() const;

  /// The names of the peers that are up.
  std::vector<std::string> peers() const;

  /// Calls `notify(name, reason)` when a peer that was up is unreachable or gone. Calls and passes with the peer have failed by
  /// then. An unreachable peer may come back: see on_peer_up(). `notify` runs on the thread that completes futures. So `notify`
  /// can't wait for a future, like a continuation (future::then). Exceptions of `notify` go to the log.
  void on_peer_down(std::function<void(const std::string&, const std::string&)> notify);

  /// Calls `notify(name, reason)` when a peer is gone: it has said farewell, its process has ended, or it was unreachable for
  /// settings::forget_after. Its objects and contexts are dropped. `notify` runs as in on_peer_down().
  void on_peer_gone(std::function<void(const std::string&, const std::string&)> notify);

  /// Calls `notify(name)` when a peer is up for the first time, and when an unreachable peer is up again. An unreachable peer
  /// that is up again has kept its objects and contexts. `notify` runs as in on_peer_down().
  void on_peer_up(std::function<void(const std::string&)> notify);

  /// Records a finished span (nanoseconds of the steady clock) if tracing is on.
  void trace(const std::string& name, const std::string& category, std::int64_t begin_ns, std::int64_t end_ns);

  /// Turns the recording of spans on or off (see settings::trace).
  void set_tracing(bool on);

  /// Turns profiling on or off (see settings::profile). While profiling is on, calls and passes of this node also record their
  /// nested calls and their libtorch operators as spans, on every node where they run. These spans go into this node's trace,
  /// with times on this node's clock. Turning profiling on turns tracing on too.
  void set_profiling(bool on);

  /// The spans of this node and of the named peers as a Chrome/Perfetto trace (JSON), on this node's clock. Each node is a
  /// process of the trace.
  std::string collect_trace(const std::vector<std::string>& peers);

  /// Tells this node that `other` is up. Pre: both nodes were constructed with the same actor system as `host`.
  void introduce(node& other);

  /// Reads the policy again, and certificates that have changed, and opens the log files of the process again. A file that
  /// can't be read, or has a mistake, changes nothing, and is named in the log. The new rights count at once, on connections
  /// that are open too. A call that the node accepted before reload() goes on, and so do the passes of contexts that are open.
  /// A role that the new policy does not name may only be a member. Any thread may call reload(). Throws troupe::error (misuse)
  /// with the reason if the policy can't be used.
  void reload();

  /// Serves other nodes until SIGTERM or SIGINT comes, the peer settings::until_left is gone, or another thread calls stop().
  /// Then stops the node. A second signal ends the process at once. SIGHUP calls reload(), unless the program has a handler of
  /// its own for SIGHUP or blocks SIGHUP on all threads. For the main thread of a program that only serves. Throws
  /// troupe::error where stop() would.
  void serve();

  /// Says farewell to the peers and stops the node's actors, as the destructor does. Calls that wait for an answer fail. Waits
  /// for calls and passes that still run here, for settings::stop_limit at most. If some still run then, stop() throws
  /// troupe::error (deadline_passed), whose text names them; the destructor logs this error. Such a function goes on in its
  /// thread. The function must not use objects that the program destroys meanwhile, such as the node. Idempotent. Throws
  /// troupe::error (misuse) inside a call or a hook that runs on this node, and in a continuation: stop() would wait for its
  /// own thread.
  void stop();

 private:
  friend class troupe::peer;
  friend struct node_access;

  void start();
  void join_seeds();

  std::shared_ptr<nodes::node_runtime> runtime_;
  std::unique_ptr<nodes::node_pages> pages_;  // null without settings::metrics
};

}  // namespace troupe
