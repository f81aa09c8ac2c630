// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <troupe/engine/protocol/initiator.hpp>
#include <troupe/engine/protocol/participant.hpp>

#include "engine/protocol/shared_value.hpp"

/// Distributed passes with the protocol's own state machines, and around them what nodes, their functions and a network do. A
/// world is a value: it can be copied, compared by its hash, and moved on by any of the events that can happen next.
namespace troupe::model {

constexpr std::size_t most_nodes = 8;  // as many as a byte has bits
constexpr std::size_t most_functions = 32;

/// A number, and a yes or no, of each function.
using counts = std::array<std::uint8_t, most_functions>;
using choice = std::bitset<most_functions>;

/// A graph of functions over nodes. An edge between two nodes is a send and a recv with one message id.
struct graph {
  struct edge {
    std::uint8_t to;
    std::uint8_t send;  // `none` on one node
  };
  struct send {
    std::uint8_t node;    // where the tensors came from, and gradients go to
    std::uint8_t target;  // the function there that gets them
  };
  static constexpr std::uint8_t none = 255;

  std::uint8_t nodes = 0;
  std::vector<std::uint8_t> home;       // node of a function
  std::vector<std::vector<edge>> next;  // always to higher numbers
  std::vector<std::uint8_t> roots;      // on node 0, which starts the passes
  std::vector<send> sends;

  explicit graph(std::uint8_t node_count) : nodes(node_count) {}
  std::uint8_t function(std::uint8_t node);
  graph& connect(std::uint8_t from, std::uint8_t to);
  /// A send to `target` that no recv answers: a result nobody used.
  graph& unused(std::uint8_t target);
  graph& root(std::uint8_t f);

  /// Functions that gradients reach from the roots.
  choice reached() const;
  /// Functions that run while nothing is dropped: none that waits, itself or by way of others, for a send that gets no gradient.
  choice run_undropped() const;
  /// Nodes that have then begun, node 0 among them, and have a send that waits, as bits.
  std::uint8_t waiting_undropped() const;
  /// Gradients that each function waits for when a pass begins.
  counts owed() const;
};

graph draw_graph(std::mt19937_64& random, std::size_t nodes, std::size_t functions, double unused);

/// What may go wrong, and how often. A loss hits any message of a pass; a cut makes two nodes take each other for down and may
/// lose what is between them. A node that is frozen for a while is one whose messages come late: every order holds that.
struct troubles {
  std::uint8_t losses = 0;
  std::uint8_t crashes = 0;
  std::uint8_t cuts = 0;
  std::uint8_t deadlines = 0;           // before time; one that has to come is free
  std::uint8_t releases = 0;            // the scope is left during a pass
  std::uint8_t throwing = graph::none;  // this function, in the first pass
  bool strangers = false;               // the initiator knows of no participant when a pass starts
  bool fast = false;                    // no trouble: passes in fast mode
};

enum class kind : std::uint8_t {
  gradients,
  returned,
  quiet,
  failed,
  discover,
  found,
  not_quiet,
  prune,
  abort,
  aborted,
  news,
  next_pass,
  release,  // in the bag
  lose,
  crash,
  cut,
  deadline,
  leave,  // at any time
};
const char* name_of(kind what);

/// A message under way, a burst that is away, or something a user or the world does.
struct event {
  kind what;
  std::uint8_t from = 0;
  std::uint8_t to = 0;
  std::uint8_t pass = 0;
  std::uint8_t send = graph::none;
  std::uint8_t sent_to = 0;  // nodes, as bits
  bool walk = false;         // returned: from a walk
  bool from_roots = false;   // the walk was
  bool failed = false;       // returned: a function threw
  purse carried = {};
  std::vector<message_id> ids = {};
};

/// One node's side of one pass.
struct part {
  std::optional<protocol::participant> protocol;  // made when the node hears of the pass
  std::vector<std::uint8_t> deliveries;           // for the next burst
  std::vector<std::uint8_t> drops;
  std::uint8_t heard_from = 0;          // nodes that gradients came from, as bits
  std::uint8_t sent_to = 0;             // nodes, as bits
  std::vector<std::uint8_t> walk_from;  // sends to start a walk from
  bool roots_due = false;               // for the next burst
  bool out = false;                     // its task is away, by the count of the model
  bool routed = false;                  // the context hands messages to it
  std::uint8_t asked = 0;               // discovers that wait for a walk to start
  std::uint8_t walking = 0;             // and those whose walk is away
  bool closed = false;                  // the context was released while a burst was away
};

struct pass {
  shared_value<protocol::initiator> lead;
  std::array<shared_value<part>, most_nodes> parts;
  counts owed = {}, runs = {};
  choice given;
  bool lossy = false;     // something went wrong: weight of it may be lost
  bool vanished = false;  // a message was lost without anybody knowing: only a deadline can end the pass
  bool discovered = false;
  bool unused = false;  // fast mode met unused sends
};

/// What can happen next: something in the bag, by its place, or something from outside.
struct step {
  kind what;
  std::uint8_t a = 0;
  std::uint8_t b = 0;
  std::size_t place = 0;
};

class world {
 public:
  /// `g` must outlive it. `passes`: so many, one after another, then the context is released.
  world(const graph& g, troubles allowed, std::uint8_t passes);

  std::vector<step> steps() const;
  void take(const step& next);

  /// Takes one event of the bag at random, or now and then a trouble. False: nothing is left to happen.
  bool take_any(std::mt19937_64& random);

  /// Equal for worlds that go on alike. What did not change since an earlier one was hashed is not looked at again.
  std::uint64_t hash() const;

  /// Empty, or what is wrong: at any time, and with nothing left to happen.
  std::string wrong_now() const;
  std::string wrong_at_end() const;

  std::uint8_t succeeded() const { return succeeded_; }
  std::uint8_t failures() const { return failures_; }

 private:
  struct member {
    bool dead = false;
    bool released = false;
    std::uint8_t cut = 0;      // nodes it lost the connection to, as bits
    std::uint8_t current = 0;  // the last pass begun or heard of, from 1
    std::uint8_t gone = 0;     // nodes it takes for down, as bits
  };

  void post(event what);
  void handle(event& what);
  void refuse(const event& what);
  void act(std::uint8_t node, std::uint8_t number, protocol::participant::steps steps);
  void act(std::uint8_t number, protocol::initiator::steps steps);
  void burst(std::uint8_t node, std::uint8_t number);
  void returned(event& what);
  void settle(pass& now, std::uint8_t function, bool given, std::vector<std::uint8_t>& ready) const;
  std::vector<message_id> walk(std::vector<std::uint8_t> from) const;
  message_id id_of(std::uint8_t send) const;
  part& part_of(std::uint8_t node, std::uint8_t number);
  part* task_of(std::uint8_t node, std::uint8_t number);
  void begin(std::uint8_t node, std::uint8_t number);
  void start_pass();
  void found_unused(std::uint8_t number, const std::vector<node_id>& on);
  void check_runs(const pass& now, const choice& expected);
  void ended(std::uint8_t number);
  void check_abort(std::uint8_t number);
  void heard(std::uint8_t node, std::uint8_t about);
  void close(std::uint8_t node);
  void separate(std::uint8_t a, std::uint8_t b);
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
