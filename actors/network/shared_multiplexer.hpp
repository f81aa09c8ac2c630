// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
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
#include <troupe/actors/network/silent_connections.hpp>
#include <troupe/messages/mutex.hpp>

namespace caf {
class actor_system;
}

namespace troupe::network {

class network_threads;

/// CAF's multiplexer, served by the network threads of the process instead of a thread of its own.
///   SM-1  a posted resumable (an actor) is resumed once, by the leader thread, or released with the multiplexer.
///   SM-2  bytes that a broker flushed leave before a thread waits for events.
///   SM-3  no broker learns of a connection that the gate refuses, or whose other end has not proven who it is. No byte of such
///         a connection reaches the code of CAF.
///   SM-4  an accepted connection for which there is no memory, or no thread for its handshake, ends. The others go on.
class shared_multiplexer final : public caf::io::network::default_multiplexer, private event_loop, private connection_host {
 public:
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
  bool lead_here() const noexcept;
  bool run_soon(network_job work);
  void finish_jobs();

  /// The gate that decides who may connect to this node, and to whom this node connects.
  const gate::connection_gate& gate() const noexcept { return gate_; }
  gate::known_peers& peers() noexcept { return peers_; }
  /// Sets the function that is called for each connection from another program that the gate refuses. Any thread may call this
  /// function. Pre: the node does not listen yet.
  void set_on_refused(std::function<void(const gate::refusal&)> on_refused);

  connection_facts& facts() noexcept override { return facts_; }
  /// The connections that this node makes. The next new_tcp_scribe() for an address takes a connection that is stored for the
  /// address.
  outgoing_connections& calls() noexcept { return calls_; }
  /// Ends the connections that this node has made to the address, if nothing has come on them yet. Called when nobody waits for
  /// these connections any more. Any thread may call it.
  void give_up_calls_to(const std::string& host, std::uint16_t port);

  /// Says that receivers take the messages of this actor in any order: on connections that are made from now on, its small
  /// messages overtake its large ones.
  void set_unordered(caf::actor_id sender) noexcept { unordered_ = sender; }

  /// Sets the work that runs once after each ask_for_idle_work(): when nothing else is due, or after a long busy time.
  void set_idle_work(std::function<void()> work) { idle_work_ = std::move(work); }
  /// Pre: the work was set.
  void ask_for_idle_work();

 private:
  class doorman;

  bool shares_memory() const override;
  caf::actor_id unordered_sender() const override { return unordered_; }
  // watch(), forget(), meet() and ring() have no effect once the network threads no longer serve this multiplexer.
  void watch(tcp_scribe* connection) override;
  void forget(tcp_scribe* connection) override;
  void meet(tcp_scribe* connection, const std::string& channel) override;
  bool ring(tcp_scribe* connection) override;
  void catch_up_soon(tcp_scribe* connection) override;
  void read_on_later(tcp_scribe* connection) override;
  void rest_for_large() override;
  void note_wrong(const std::string& address, const std::string& what) override;
  const gate::known_peers& peers() const noexcept override { return peers_; }

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
  void admit(gate::proven_connection arrived, std::uint64_t listener);
  void refuse(const gate::refusal& why) const;
  caf::expected<gate::proven_connection> begin_call(const std::string& host, std::uint16_t port) const;

  const gate::connection_gate gate_;
  gate::known_peers peers_;
  connection_facts facts_;
  outgoing_connections calls_;
  std::function<void(const gate::refusal&)> on_refused_;
  struct {
    checked_mutex mutex;
    std::uint64_t last TROUPE_GUARDED_BY(mutex) = 0;
    std::unordered_map<std::uint64_t, doorman*> all TROUPE_GUARDED_BY(mutex);
    silent_connections silent;  // used by the leader thread only
  } doormen_;
  std::optional<gate::reception> reception_;  // with certificates; its thread calls post() and refuse()
  std::atomic<caf::actor_id> unordered_{0};
  const std::shared_ptr<network_threads> threads_;
  std::function<void()> idle_work_;

  struct {
    checked_mutex mutex;
    std::vector<caf::resumable*> all TROUPE_GUARDED_BY(mutex);
    std::atomic<bool> are_served{false};  // changed under the lock only
    // own and due: used by the leader thread only.
    std::vector<caf::resumable*> own;
    std::vector<caf::resumable*> due;
  } posts_;
  struct {  // used by the leader thread only
    std::vector<caf::intrusive_ptr<tcp_scribe>> behind;
    std::vector<caf::intrusive_ptr<tcp_scribe>> catching_up;
    std::vector<caf::intrusive_ptr<tcp_scribe>> reading_on;
  } scribes_;
};

/// The network of the system; null if the system has no network, or CAF's own network.
shared_multiplexer* network_of(caf::actor_system& system);

/// The gate of the system's network. CAF's own network has no gate: then the result lets everybody in.
gate::connection_gate gate_of(caf::actor_system& system);

}  // namespace troupe::network
