// SPDX-License-Identifier: BSD-3-Clause
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
#include <troupe/messages/attributes.hpp>
#include <troupe/messages/errors.hpp>
#include <troupe/messages/ids.hpp>

namespace caf {
class actor_system;
}

namespace troupe::nodes {

class company;

}  // namespace troupe::nodes

namespace troupe::objects {

class object_store;

}  // namespace troupe::objects

namespace troupe {

class remote_module;
struct node_status;

/// Another node of the cluster (or this one), as this node sees it.
class peer {
 public:
  peer(node& here, std::string name, node_id id) : here_(&here), name_(std::move(name)), id_(id) {}

  const std::string& name() const noexcept { return name_; }
  node_id id() const noexcept { return id_; }
  node& here() const noexcept { return *here_; }

  /// Runs the registered function on the peer. Inside a troupe::context of the calling thread the call joins that context. The
  /// elements of the tensors are read after call() returns: do not change them until the future is complete. A node that calls
  /// itself gets the same tensors, not copies.
  /// The future fails with troupe::error (peer_down, deadline_passed, unknown_function, function_failed ...).
  future<call_reply> call(std::string function, std::vector<at::Tensor> tensors = {}, attributes values = {},
                          object_id target = {}, std::optional<std::chrono::milliseconds> deadline = {}) const;

  /// The actor that the peer published under this name, as a handle of its typed interface: `caf::actor_cast<my_actor>(...)`. Blocks;
  /// throws troupe::error (unknown_function, peer_down ...).
  caf::strong_actor_ptr actor(const std::string& name) const;

  /// What the peer does right now and has done so far; it answers also while all its workers compute. Blocks; throws troupe::error
  /// (peer_down, deadline_passed ...).
  node_status status(std::optional<std::chrono::milliseconds> deadline = {}) const;

  /// Makes a module of the registered type on the peer and returns a handle that owns it. Blocks; throws troupe::error.
  remote_module create(const std::string& type, attributes values = {}) const;

 private:
  node* here_;
  std::string name_;
  node_id id_;
};

/// One process in the cluster: an actor system with a name, and its actors.
class node {
 public:
  explicit node(settings options);
  /// A node on the caller's actor system, without a network: for tests and simulations of many nodes, which
  /// introduce() makes known to each other.
  node(settings options, caf::actor_system& host);
  ~node();
  node(const node&) = delete;
  node& operator=(const node&) = delete;

  const std::string& name() const noexcept;
  node_id id() const noexcept;
  const settings& options() const noexcept;
  /// The port that the node listens on.
  std::uint16_t port() const noexcept;

  /// Functions that other nodes may call here.
  function_table& functions() noexcept;

  /// The actor system of the node: spawn your own actors there (see settings::configure for their message types).
  caf::actor_system& system() noexcept;

  /// Other nodes find the actor by this name (peer::actor). It ends with the node.
  void publish(std::string name, const caf::strong_actor_ptr& actor);

  /// Modules and optimizers that live here.
  objects::object_store& objects() noexcept;

  /// Connects to the node at host:port; returns its name. Blocks up to the deadline; throws troupe::error.
  std::string join(const std::string& host, std::uint16_t port, std::optional<std::chrono::milliseconds> deadline = {});

  /// The node with this name. Waits until the node is known, at most until the deadline; throws troupe::error (unknown_peer). A
  /// continuation (future::then) can't wait: it gets only nodes that are known.
  troupe::peer peer(const std::string& name, std::optional<std::chrono::milliseconds> deadline = {});

  /// This node as a peer of itself.
  troupe::peer self();

  /// What this node does right now and has done so far: contexts, passes, calls, functions, and the traffic with each peer.
  /// `troupe status` shows the same of another process.
  node_status status() const;

  /// Names of the peers that are up.
  std::vector<std::string> peers() const;

  /// Calls `notify(name, reason)` when a peer goes down or says farewell, on the thread that brings results: like a continuation
  /// (future::then) it can't wait. Its exceptions go to the log.
  void on_peer_down(std::function<void(const std::string&, const std::string&)> notify);

  /// Records a finished span (steady clock, nanoseconds) when tracing is on.
  void trace(std::string name, std::string category, std::int64_t begin_ns, std::int64_t end_ns);

  /// Turns the recording of spans on or off (see settings::trace).
  void set_tracing(bool on);

  /// Turns profiling on or off (see settings::profile): the answers to this node's calls, and the passes it starts, then bring
  /// the spans of what ran, operators and nested calls included, into this node's trace, under the call and on its clock. On
  /// turns tracing on too.
  void set_profiling(bool on);

  /// The spans of all nodes named, as a Chrome/Perfetto trace (JSON), one row a node, on this node's clock.
  std::string collect_trace(const std::vector<std::string>& peers);

  /// Tells this node that `other`, on the same actor system and without a network too, is up.
  void introduce(node& other);

  /// Says farewell and stops the actors; the destructor does the same. Calls that wait fail. Idempotent. Throws troupe::error
  /// (misuse) inside a call or a hook that runs on this node, and in a continuation: stop() would wait for its own thread.
  void stop();

 private:
  friend class troupe::peer;
  friend struct node_access;

  std::unique_ptr<nodes::company> company_;
};

}  // namespace troupe
