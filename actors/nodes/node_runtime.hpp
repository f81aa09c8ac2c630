// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <caf/actor_system.hpp>

#include <troupe/actors/nodes/node_link.hpp>
#include <troupe/actors/nodes/node_services.hpp>
#include <troupe/actors/nodes/pass_workers.hpp>
#include <troupe/actors/nodes/system_config.hpp>
#include <troupe/actors/settings.hpp>
#include <troupe/messages/mutex.hpp>

namespace troupe::network {

class shared_multiplexer;

}  // namespace troupe::network

namespace troupe::nodes {

/// The actors behind a node. Starts the actors, listens for other nodes, and stops the actors. Any thread may use a runtime.
///   RU-1  after begin_end() and end() no actor of the node lives. On an actor system without threads, each actor has only been
///         told to end. end() waits for functions that run, and at most `device_patience` for elements that a device has not
///         computed yet.
class node_runtime {
 public:
  static constexpr std::chrono::seconds device_patience{1};

  /// With `host` the actors live on that actor system. introduce() makes the nodes of one system known to each other. If the
  /// system has no threads (support/thread_actor.hpp), the node's clock of deadlines stands still, and end() waits for no
  /// actor. Throws troupe::error (misuse) if the system has no middleman.
  node_runtime(node& handle, settings options, caf::actor_system* host = nullptr);
  ~node_runtime();  // NOLINT(bugprone-exception-escape)
  node_runtime(const node_runtime&) = delete;
  node_runtime& operator=(const node_runtime&) = delete;

  /// Begins the end of the node. Returns false if begin_end() was called before. Throws troupe::error (misuse) on a thread of a
  /// call, a burst or a continuation, because end() would wait for that thread.
  bool begin_end();
  /// Pre: begin_end() has returned true, and nobody has called end() since. Any thread may call end(), except the threads of
  /// the node.
  void end() noexcept;
  /// Throws troupe::error (stopping) after begin_end().
  void check_running() const;

  /// Whether the runtime has made the actor system of its actors. Only such a system connects to nodes of other systems.
  bool has_own_system() const noexcept { return own_system_ != nullptr; }
  node_services& services() noexcept { return services_; }
  const std::shared_ptr<node_link>& link() const noexcept { return link_; }

  /// As node::reload(), but throws nothing: returns and logs the reason if the policy can't be used. Returns an empty text if
  /// the policy can be used, or if there is none.
  std::string reload() noexcept;

  /// Tells this node that another node on the same actor system is up.
  void introduce(node_runtime& other);

 private:
  void start_system();
  void start();
  void start_threads();
  void start_pass_workers();
  /// `loopback`: the loopback address of the node's host name on this host, if that address misleads other nodes; otherwise
  /// empty.
  contracts::membership_host start_membership(const std::string& loopback);
  void listen(const std::string& loopback);
  void watch_certificates();
  void look_at_certificates();
  void warn_of_roles_that_save();
  void tidy();
  void end_actors();
  void let_go();

  node_services services_;
  const std::shared_ptr<node_link> link_;
  std::mutex looking_;  // held while the certificates are read again
  mutable checked_mutex mutex_;
  bool stopped_ TROUPE_GUARDED_BY(mutex_) = false;
  std::optional<system_config> config_;
  std::unique_ptr<caf::actor_system> own_system_;  // the actors of this system use services_ until their end
  network::shared_multiplexer* network_ = nullptr;
  std::vector<gate::own_actors::hold> guards_;
  std::optional<pass_workers> pass_workers_;
};

}  // namespace troupe::nodes
