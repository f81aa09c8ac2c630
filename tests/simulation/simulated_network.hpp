// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "simulation/event_queue.hpp"

namespace troupe::simulation {

/// What the network and the nodes of a simulation cost. With the values of a default-constructed struct all is free.
struct network_costs {
  std::int64_t latency_ns = 0;       // of a message, one way
  std::int64_t jitter_ns = 0;        // a message takes up to this much longer, drawn at random
  double bytes_per_second = 0;       // of the interface of each node, in each direction; 0: no limit
  std::int64_t send_ns = 0;          // CPU time of the sender of a message
  std::int64_t receive_ns = 0;       // CPU time of the receiver
  double byte_ns = 0;                // CPU time for each byte, at either end
  std::uint64_t envelope_bytes = 0;  // of a message on the wire, beside its structs
  std::size_t cores = 0;  // that all nodes share for messages, as processes of one machine do; 0: each node has its own

  /// A cluster whose nodes stand in one rack, with what troupe's messages cost on the machine of docs/measurements.md.
  static network_costs one_rack();
  /// "latency 25 us, ...", for people.
  std::string text() const;
};

/// What a node has done.
struct node_counts {
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;
  std::int64_t cpu_ns = 0;  // of messages
};

/// Nodes of a simulation, their CPUs, and the network between them. Knows no message: a message is a number of bytes and what
/// happens when it arrives. Two messages of one connection may overtake each other, as between troupe's gateways.
///   NQ-1  a node has one CPU for messages and one for functions. Each does one thing at a time, in the order in which things came. With
///         shared cores a message also waits for a core that is free.
///   NQ-2  a message arrives at most once. It does not arrive if its connection has ended, or if a process at one of its ends
///         has. While its way is cut, it waits; if the network loses messages, it is lost then.
///   NQ-3  at a node that is frozen nothing happens. What was due meanwhile happens in its order when the node is awake.
///   NQ-4  one seed gives one run.
class simulated_network {
 public:
  using action = event_queue::action;
  using node_number = std::size_t;

  simulated_network(event_queue& clock, std::size_t nodes, network_costs costs, std::uint64_t seed);

  event_queue& clock() noexcept { return clock_; }
  std::size_t size() const noexcept { return nodes_.size(); }
  node_number add_node();
  const network_costs& costs() const noexcept { return costs_; }

  /// Told when a connection has ended by itself, at the ends that can hear it.
  std::function<void(node_number at, node_number other)> on_lost;

  /// The number of the connection between two nodes, which is another one after each connect(); 0 if there is none.
  std::uint64_t connection(node_number a, node_number b) const;
  /// Makes a connection if there is none.
  void connect(node_number a, node_number b);
  /// Ends the connection. The ends that can hear it are told (on_lost).
  void disconnect(node_number a, node_number b);
  /// Ends the connection. Nobody is told.
  void disconnect_quietly(node_number a, node_number b) { connections_.erase(pair_of(a, b)); }

  /// Sends a message over the connection between the two nodes. Without jitter messages arrive in their order. A message of a node to itself needs none.
  void send(node_number from, node_number to, std::uint64_t bytes, action arrived);
  /// Runs `then` when the CPU for messages has worked for `ns` on it. Not if the process of the node has ended meanwhile.
  void work(node_number node, std::int64_t ns, action then);
  /// The same on the CPU for functions.
  void compute(node_number node, std::int64_t ns, action then);
  /// The CPU for messages works for `ns`, and what comes after waits for it.
  void spend(node_number node, std::int64_t ns) { on_cpu(node, ns); }
  /// Runs `then` after a time, for free. Not if the process of the node has ended meanwhile.
  void after(node_number node, std::int64_t delay_ns, action then);

  /// No message passes from one node to the other.
  void cut_way(node_number from, node_number to) { cut_.insert(way_of(from, to)); }
  void mend_way(node_number from, node_number to);
  /// No message passes between the nodes with numbers below `first` and the others; 0: all of them reach each other again.
  void separate(std::size_t first);
  std::size_t parted() const noexcept { return parted_; }
  /// Messages between the two nodes take `factor` times as long as others.
  void slow(node_number a, node_number b, std::int64_t factor);
  void mend_all();
  bool is_cut(node_number from, node_number to) const;

  void freeze(node_number node) { nodes_[node].is_frozen = true; }
  void thaw(node_number node);
  bool is_frozen(node_number node) const { return nodes_[node].is_frozen; }

  /// Ends the process of the node. All of its connections end.
  void end(node_number node);
  /// Ends the process without a word to the others, which have heard already that it leaves.
  void end_quietly(node_number node);
  /// Starts another process of the node.
  void start(node_number node);
  bool is_running(node_number node) const { return nodes_[node].is_running; }

  /// A message on a way that is cut is lost, instead of waiting until the way is mended.
  void lose_what_is_cut() noexcept { loses_ = true; }
  /// Of `n` messages one is lost, drawn at random; 0: none is.
  void lose_one_of(std::uint64_t n) noexcept { lost_of_ = n; }

  const node_counts& counts(node_number node) const { return nodes_[node].counts; }
  void forget_counts();
  std::uint64_t below(std::uint64_t limit) { return random_() % limit; }

 private:
  struct node {
    bool is_frozen = false;
    bool is_running = true;
    std::uint64_t life = 0;  // counts the processes of the node
    std::int64_t cpu_free_ns = 0;
    std::int64_t functions_free_ns = 0;
    std::int64_t out_free_ns = 0;  // when the interface has sent what it has
    std::int64_t in_free_ns = 0;
    std::vector<std::pair<std::uint64_t, action>> late;  // what was due while the node was frozen, with its life
    node_counts counts;
  };
  struct message {
    node_number from;
    node_number to;
    std::uint64_t bytes;
    std::uint64_t connection;
    std::uint64_t life;  // of the receiver
    action arrived;
    bool was_held = false;
  };
  using message_ptr = std::shared_ptr<message>;

  static std::uint64_t pair_of(node_number a, node_number b) { return way_of(std::min(a, b), std::max(a, b)); }
  static std::uint64_t way_of(node_number from, node_number to) { return (std::uint64_t{from} << 32) | to; }
  void run(node_number node, std::uint64_t life, action what);
  void travel_later(std::int64_t at_ns, message_ptr what);
  void travel(const message_ptr& what);
  void land(message& what);
  bool stands(const message& what) const;
  void tell_lost(node_number a, node_number b);
  void release_held();
  std::int64_t on_cpu(node_number node, std::int64_t ns);
  std::int64_t on_wire_ns(std::uint64_t bytes) const;
  std::int64_t bytes_ns(std::uint64_t bytes) const;

  event_queue& clock_;
  network_costs costs_;
  std::mt19937_64 random_;
  std::vector<node> nodes_;
  std::unordered_map<std::uint64_t, std::uint64_t> connections_;
  std::uint64_t last_connection_ = 0;
  std::unordered_set<std::uint64_t> cut_;
  std::unordered_map<std::uint64_t, std::int64_t> slow_;
  std::size_t parted_ = 0;
  std::vector<std::int64_t> core_free_ns_;                  // of the cores that nodes share
  std::vector<message_ptr> held_;                           // on ways that are cut
  std::unordered_map<std::uint64_t, std::int64_t> mended_;  // when what was held on a way arrives
  bool loses_ = false;
  std::uint64_t lost_of_ = 0;
};

}  // namespace troupe::simulation
