// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <troupe/engine/protocol/initiator.hpp>
#include <troupe/engine/protocol/participant.hpp>

#include "engine/protocol/shared_value.hpp"
#include "simulation/pass_carrier.hpp"

/// A model of distributed passes: the protocol's own state machines, and around them nodes, their functions and a network. A
/// world is a value: a test can copy it, compare it by its hash, and advance it by any of the events that can happen next.
namespace troupe::model {

constexpr std::size_t most_nodes = 8;  // the number of bits in a byte
constexpr std::size_t most_functions = 32;

/// A number for each function, and a bit for each function.
using counts = std::array<std::uint8_t, most_functions>;
using choice = std::bitset<most_functions>;

/// Tensors of a message, as bits.
using tensors = std::uint8_t;
constexpr tensors all_tensors = 255;

/// A graph of functions over nodes. An edge between two nodes is a send and a recv with one message id. A message of several tensors is a
/// recv and a send that are functions of their own.
struct graph {
  struct edge {
    std::uint8_t to;
    std::uint8_t send;   // `none` if both functions are on one node
    tensors tensor = 0;  // for an edge to a recv: which tensor
  };
  struct send {
    std::uint8_t node;    // the node that sent the tensors and gets the gradients
    std::uint8_t target;  // the function on that node that gets the gradients
    tensors tensor = 0;   // if the target is a recv
  };
  static constexpr std::uint8_t none = 255;

  std::uint8_t nodes = 0;
  std::vector<std::uint8_t> home;       // the node of each function
  std::vector<std::vector<edge>> next;  // edges always lead to higher numbers
  std::vector<std::uint8_t> roots;      // root functions, on node 0, which starts the passes
  std::vector<send> sends;
  choice is_recv, is_send;  // functions of messages. Output i of such a send is tensor i
  std::vector<std::uint8_t>
    parent;                 // of each node, in the tree of calls; `none` if the node has none, or reports to node 0 in any case
  std::uint8_t untold = 0;  // nodes, as bits, whose parents do not know that they are

  explicit graph(std::uint8_t node_count) : nodes(node_count), parent(node_count, none) {}
  std::uint8_t function(std::uint8_t node);
  graph& connect(std::uint8_t from, std::uint8_t to, std::uint8_t tensor = 0);
  /// The recv and the send of a message of several tensors, which went from the node of `send` to that of `recv`. Nothing else leads to `send`, and
  /// `recv` leads to nothing else.
  graph& message(std::uint8_t recv, std::uint8_t send);
  /// Adds a send to `target` that no recv answers: a result that is not used.
  graph& unused(std::uint8_t target);
  graph& root(std::uint8_t f);
  /// Node `node` has joined the context by a call of node `caller`.
  graph& joined(std::uint8_t node, std::uint8_t caller);
  /// The position of the node in the tree of calls.
  protocol::call_tree_position_ptr position(std::uint8_t node) const;

  /// The functions that gradients reach from the roots.
  choice reached() const;
  /// The functions that a discovery finds: those that gradients would reach if each message had one tensor.
  choice walked() const;

  /// What happens while no send is dropped.
  struct undropped {
    choice run;  // a function does not run if it waits, directly or through others, for a send that hears nothing
    std::vector<bool> waiting;  // by send
  };
  undropped run_undropped() const;
  /// The nodes, as bits, to which functions lead that gradients reach (node 0 included), and that have a send that waits, if no send is
  /// dropped.
  std::uint8_t waiting_undropped() const;
  /// The number of gradients that each function waits for when a pass begins.
  counts owed() const;
};

/// `messages`: some messages have several tensors.
graph draw_graph(std::mt19937_64& random, std::size_t nodes, std::size_t functions, double unused, bool messages = false);

/// What may go wrong, and how often. A loss takes any message of a pass. A cut makes two nodes regard each other as down, and
/// may lose the messages between them. A node that freezes for a while needs no trouble of its own: its messages come late,
/// which every order allows.
struct troubles {
  std::uint8_t losses = 0;
  std::uint8_t crashes = 0;
  std::uint8_t cuts = 0;
  std::uint8_t deadlines = 0;           // early deadlines; a stuck pass gets a deadline in any case
  std::uint8_t releases = 0;            // the context is released during a pass
  std::uint8_t throwing = graph::none;  // the function that throws in the first pass
  bool strangers = false;               // the initiator knows of no participant when a pass starts
  bool fast = false;                    // not a trouble: passes run in fast mode
};

using simulation::kind;
using event = simulation::event<std::uint8_t>;
const char* name_of(kind what);

/// One node's side of one pass.
struct node_state {
  std::optional<protocol::participant> protocol;             // created when the node hears of the pass
  std::vector<std::pair<std::uint8_t, tensors>> deliveries;  // for the next burst
  choice walked;                                             // functions that walks have visited
  bool has_walked = false;
  bool roots_due = false;  // for the next burst
  bool out = false;        // the task is away, by the model's own count
  bool routed = false;     // the context routes messages to this node
  bool gathers = false;    // somebody has asked for the gradients of the leaves
};

struct pass {
  shared_value<protocol::initiator> lead;
  std::array<shared_value<node_state>, most_nodes> states;
  counts owed = {}, runs = {};
  choice given;
  counts reached = {};    // by recv and send of a message: its tensors that functions of the pass lead to
  bool lossy = false;     // something went wrong: weight of the pass may be lost
  bool vanished = false;  // a message was lost and no node knows it: only a deadline can end the pass
  bool discovered = false;
  bool unused = false;      // fast mode has found unused sends
  bool late = false;        // the deadline has passed while the pass ran
  std::uint8_t aborts = 0;  // nodes, as bits, that were asked to abort and have not answered that they were done
};

/// What can happen next: an event in the bag, by its index, or an event from outside.
struct step {
  kind what;
  std::uint8_t a = 0;
  std::uint8_t b = 0;
  std::size_t position = 0;
};

class world : private simulation::pass_carrier<world, std::uint8_t> {
 public:
  /// `g` must outlive the world. `passes`: the number of passes, one after another; then the context is released.
  world(const graph& g, troubles allowed, std::uint8_t passes);

  std::vector<step> steps() const;
  void take(const step& next);

  /// Takes a random event of the bag, or now and then a trouble. Returns false if nothing is left to happen.
  bool take_any(std::mt19937_64& random);

  /// Equal for worlds that behave alike. Parts that did not change since an earlier world was hashed are not hashed again.
  std::uint64_t hash() const;

  /// Returns what is wrong, or an empty text; wrong_at_end() is for a world in which nothing is left to happen.
  std::string wrong_now() const;
  std::string wrong_at_end() const;

  std::uint8_t succeeded() const { return succeeded_; }
  std::uint8_t failures() const { return failures_; }

 private:
  struct member {
    bool dead = false;
    bool released = false;
    std::uint8_t cut = 0;      // nodes to which the connection is lost, as bits
    std::uint8_t current = 0;  // the last pass begun or heard of, from 1
    std::uint8_t gone = 0;     // nodes that this node regards as down, as bits
  };

  // What the carrier asks of a world.
  friend pass_carrier;
  void post(event what);
  bool reaches(std::uint8_t from, std::uint8_t to) const;
  static node_id id_of(std::uint8_t node) { return {node + 1U}; }
  static std::uint8_t number_of(node_id id) { return static_cast<std::uint8_t>(id.value - 1); }
  std::uint8_t parent_of(std::uint8_t node) const { return graph_->parent[node]; }
  bool is_released(std::uint8_t node) const { return nodes_[node].released; }
  protocol::initiator* lead(std::uint8_t number);
  protocol::participant* participant(std::uint8_t node, std::uint8_t number);
  protocol::participant* routed(std::uint8_t node, std::uint8_t number);
  protocol::participant* join(std::uint8_t node, std::uint8_t number);
  protocol::participant* skip(std::uint8_t node, std::uint8_t number);
  void keep(const event& what);
  void forget(std::uint8_t node, std::uint8_t number) { state_of(node, number).deliveries.clear(); }
  void run(std::uint8_t node, std::uint8_t number, protocol::participant::run_burst& what);
  void walk(std::uint8_t node, std::uint8_t number, const protocol::participant::run_walk& what);
  void stop(std::uint8_t, std::uint8_t) {}
  void free(std::uint8_t node, std::uint8_t number);
  void ended(std::uint8_t node, std::uint8_t number);
  void unused(std::uint8_t number, const std::vector<node_id>& on);
  void complete(std::uint8_t number, const std::vector<node_id>& not_done);
  void await_abort(std::uint8_t number, node_id who);
  void await_aborts(std::uint8_t) {}
  void acted(std::uint8_t node, std::uint8_t number);
  void handed_out(std::uint8_t node, std::uint8_t number);
  void acted(std::uint8_t) {}
  void prunes(std::uint8_t) {
    if (left_.fast) wrong_ = "a pass in fast mode prunes";
  }

  void happen(event& what);
  void gather(std::uint8_t node, std::uint8_t number);
  /// What a burst still has to do.
  struct work {
    std::vector<std::uint8_t> ready;
    std::vector<std::pair<std::uint8_t, tensors>> recvs;  // by send: the tensors that are reached
  };
  void settle(pass& now, const model::node_state& mine, std::uint8_t function, bool given, tensors reached, work& open) const;
  void hand_on(pass& now, const model::node_state& mine, std::uint8_t function, work& open) const;
  message_id id_of_send(std::uint8_t send) const;
  model::node_state& state_of(std::uint8_t node, std::uint8_t number);
  void begin(std::uint8_t node, std::uint8_t number);
  void start_pass();
  void check_runs(const pass& now, const choice& expected);
  void check_abort(std::uint8_t number);
  void heard(std::uint8_t node, std::uint8_t about);
  void release(std::uint8_t node);
  std::vector<step> outside() const;
  bool has_all_weight(const pass& now) const;
  bool settled() const;

  const graph* graph_;
  troubles left_;
  std::uint8_t passes_;
  std::array<member, most_nodes> nodes_;
  std::vector<pass> started_;
  std::vector<shared_value<event>> bag_;
  std::uint8_t succeeded_ = 0;
  std::uint8_t failures_ = 0;
  bool left_early_ = false;
  std::string wrong_;
};

}  // namespace troupe::model
