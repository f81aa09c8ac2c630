// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <caf/intrusive_ptr.hpp>
#include <caf/io/network/default_multiplexer.hpp>
#include <caf/resumable.hpp>

#include <troupe/actors/gate/connection_gate.hpp>
#include <troupe/actors/gate/reception.hpp>
#include <troupe/actors/network/connection_host.hpp>
#include <troupe/actors/network/event_loop.hpp>
#include <troupe/actors/network/network_threads.hpp>
#include <troupe/actors/network/silent_connections.hpp>

namespace caf {
class actor_system;
}

namespace troupe::network {

/// CAF's multiplexer, served by the network threads of the process instead of a thread of its own.
///   SM-1  a posted resumable (an actor) is resumed once, by the leader thread, or released with the multiplexer.
///   SM-2  bytes that a broker flushed leave before a thread waits for events.
///   SM-3  no broker learns of a connection that the gate refuses or whose other end has not proven itself, and no byte of such a
///         connection reaches the code of CAF.
///   SM-4  an accepted connection for which there is no memory, or no thread for its handshake, ends. The others go on.
class shared_multiplexer final : public caf::io::network::default_multiplexer, private event_loop, private connection_host {
 public:
  using job = network_threads::job;

  /// The most messages that a broker handles before other brokers have their turn.
  static constexpr std::size_t most_messages = 64;

  explicit shared_multiplexer(caf::actor_system* system);
  ~shared_multiplexer() override;

  void exec_later(caf::resumable* what) override;
  /// Returns when the multiplexer has no sockets any more.
  void run() override;
  caf::io::scribe_ptr new_scribe(caf::io::network::native_socket socket) override;
  caf::io::doorman_ptr new_doorman(caf::io::network::native_socket socket) override;
  /// Also takes an address with a scope, "fe80::1%eth0", which CAF's own function can't read.
  caf::expected<caf::io::doorman_ptr> new_tcp_doorman(std::uint16_t port, const char* in, bool reuse) override;
  caf::expected<caf::io::scribe_ptr> new_tcp_scribe(const std::string& host, std::uint16_t port) override;

  /// See network_threads.
  bool lead_here() const noexcept { return threads_->lead_here(); }
  bool run_soon(job work) { return threads_->run_soon(*this, std::move(work)); }
  void finish_jobs() { threads_->finish_jobs(*this); }

  /// Who may connect to this node, and to whom this node connects.
  const gate::connection_gate& gate() const noexcept { return gate_; }
  /// The certificate of a node, as introduced_nodes::find() gives it. Any thread may call it.
  std::optional<certificates::identity> certificate_of(node_id who) const { return introduced_->find(who); }
  /// The id of the node with this name, as introduced_nodes::find() gives it. Any thread may call it.
  std::optional<node_id> id_of(const std::string& name) const { return introduced_->find(name); }
  /// Says that the node with this id becomes a member, as introduced_nodes::accept() takes it. Any thread may call it.
  bool accept(node_id who) { return introduced_->accept(who); }
  /// The certificate of a node of CAF that is connected itself; nothing for another one. Any thread may call it.
  std::optional<certificates::identity> certificate_of(const caf::node_id& who) const;
  /// Keeps others from taking the id of this node. Pre: no connection has been made.
  void introduce_self(node_id own);
  /// Sets what is called, by any thread, for each connection from another program that the gate refuses. Pre: the node does not
  /// listen yet.
  void set_on_refused(std::function<void(const gate::refusal&)> on_refused) { on_refused_ = std::move(on_refused); }

  /// Says that the actor is one of the node's own, for as long as the result lives (message_rules BR-6).
  own_actors::hold guard(caf::actor_id actor, own_actors::kind what) { return own_->add(actor, what); }
  const std::shared_ptr<own_actors>& own() const override { return own_; }

  /// Says that all actors that the system has now are its own ones or the node's.
  void guard_first() { own_->add_first(system().latest_actor_id()); }

  /// Keeps a connection that was made to the address, and whose other end has proven itself, for as long as the result lives: the next
  /// new_tcp_scribe() for the address takes it, and makes no connection. Any thread may call it.
  std::shared_ptr<void> offer(std::string host, std::uint16_t port, gate::proven_connection made);

  /// Ends the connections that this node makes to the address and on which nothing has come yet: nobody waits for them any more. Any
  /// thread may call it.
  void give_up_calls_to(const std::string& host, std::uint16_t port);

  /// Whether the connection with this socket goes on in shared memory.
  bool has_channel(int socket) const { return process_beyond(socket).has_value(); }
  /// The process with which the connection with this socket shares memory, as the kernel says. Nothing if the connection shares none; 0
  /// if the kernel names no process.
  std::optional<std::uint64_t> process_beyond(int socket) const;

  /// How many bytes wait to leave by the connection with this socket; less than connection_host::least_noted may be told as 0.
  std::size_t waiting(int socket) const;

  /// Says that receivers take the messages of this actor in any order: on connections that are made from now on, its small messages
  /// overtake its large ones.
  void set_unordered(caf::actor_id sender) noexcept { unordered_ = sender; }

  /// Sets the work that runs once after each ask_for_idle_work(): when nothing else is due, or after a long busy time. Pre: nobody
  /// has asked for idle work yet.
  void set_idle_work(std::function<void()> work);
  void ask_for_idle_work() { threads_->ask_for_idle_work(*this); }

 private:
  class doorman;

  bool shares_memory() const override { return shares_memory_; }
  caf::actor_id unordered_sender() const override { return unordered_; }
  // watch() and forget() have no effect once the network threads no longer serve this multiplexer.
  void watch(tcp_scribe* connection) override {
    if (threads_->lead_here()) threads_->watched().add(*this, connection);
  }
  void forget(tcp_scribe* connection) override {
    if (threads_->lead_here()) threads_->watched().forget(connection);
  }
  void catch_up_soon(tcp_scribe* connection) override;
  void read_on_later(tcp_scribe* connection) override;
  void note_channel(int socket, std::optional<std::uint64_t> process) override;
  void note_waiting(int socket, std::size_t bytes) override;
  void note_wrong(const std::string& address, const std::string& what) override;
  const std::shared_ptr<gate::introduced_nodes>& introduced() const override { return introduced_; }
  const std::shared_ptr<node_ids>& ids() const override { return ids_; }
  const rights::policy_file* policy() const noexcept override { return gate_.policy().get(); }

  int poll_handle() const override;
  void handle_events() override;
  bool handle_posts() override;
  void settle() override;
  void go_on() override;
  void do_idle_work() override { idle_work_(); }
  bool ended() const override { return num_socket_handlers() == 0; }
  void left() override;

  void resume_some(caf::resumable* what);
  void catch_up();

  bool lets_in(int socket);
  caf::intrusive_ptr<tcp_scribe> make_scribe(support::owned_descriptor&& socket, gate::end which,
                                             std::unique_ptr<gate::tls_session> secured);
  void admit(gate::proven_connection arrived, std::uint64_t door);
  void refuse(const gate::refusal& why) const;
  caf::expected<gate::proven_connection> begin_call(const std::string& host, std::uint16_t port) const;

  const bool shares_memory_;
  const gate::connection_gate gate_;
  const std::shared_ptr<gate::introduced_nodes> introduced_;
  const std::shared_ptr<node_ids> ids_ = std::make_shared<node_ids>();
  node_ids::hold own_id_;  // with certificates
  const std::shared_ptr<own_actors> own_ = std::make_shared<own_actors>();
  std::function<void(const gate::refusal&)> on_refused_;

  std::mutex door_mutex_;  // guards the next two
  std::uint64_t last_door_ = 0;
  std::unordered_map<std::uint64_t, doorman*> doors_;
  std::optional<gate::reception> reception_;  // with certificates; uses all of the above
  std::atomic<caf::actor_id> unordered_{0};
  const std::shared_ptr<network_threads> threads_;
  std::function<void()> idle_work_;

  mutable std::mutex channel_mutex_;                 // guards the next two
  std::unordered_map<int, std::uint64_t> channels_;  // processes beyond the connections that go on in shared memory, by socket
  std::unordered_map<int, std::size_t> waiting_;     // bytes that wait to leave, by socket

  std::mutex post_mutex_;  // guards posted_
  std::vector<caf::resumable*> posted_;
  std::atomic<bool> served_{false};  // changed under the lock only

  // Used by the leader thread only:
  silent_connections silent_;

  struct unanswered_call {
    std::string host;
    std::uint16_t port;
    std::weak_ptr<const int> socket;  // expired: something has come, or the connection is over
  };
  struct offered_connection {
    std::string host;
    std::uint16_t port;
    gate::proven_connection made;
  };
  std::optional<gate::proven_connection> take_offered(const std::string& host, std::uint16_t port);

  std::mutex offered_mutex_;  // guards the next one
  std::vector<std::weak_ptr<offered_connection>> offered_;
  std::mutex unanswered_mutex_;  // guards the next one
  std::vector<unanswered_call> unanswered_;
  std::vector<caf::resumable*> own_posted_;
  std::vector<caf::resumable*> due_;
  std::vector<caf::intrusive_ptr<tcp_scribe>> behind_;
  std::vector<caf::intrusive_ptr<tcp_scribe>> catching_up_;
  std::vector<caf::intrusive_ptr<tcp_scribe>> reading_on_;
};

/// The network of the system; null if it has none, or CAF's own.
shared_multiplexer* network_of(caf::actor_system& system);

/// As shared_multiplexer::guard(), on a system that may have another network or none. Then nothing is guarded.
own_actors::hold guard(caf::actor_system& system, caf::actor_id actor, own_actors::kind what);

/// The gate of the system's network. CAF's own network has none: it talks to everybody.
gate::connection_gate gate_of(caf::actor_system& system);

}  // namespace troupe::network
