// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <troupe/engine/protocol/initiator.hpp>
#include <troupe/engine/protocol/participant.hpp>
#include <troupe/messages/messages.hpp>

#include "pass_carrier.hpp"
#include "simulated_network.hpp"

namespace troupe::simulation {

/// The graph that a forward over several nodes has left, as backward sees it: functions on nodes, and edges in the direction of
/// the gradients. Node 0 starts the pass. An edge between two nodes is a recv where the edge begins and a send where it ends.
///   PQ-1  edges lead to functions with higher numbers.
struct pass_shape {
  using number = std::uint32_t;
  static constexpr number none = std::numeric_limits<number>::max();

  struct edge {
    number to;
    number send;  // `none` if both functions are on one node
  };
  struct send {
    number node;    // the node that sent the tensors forward and gets their gradients
    number target;  // the function of that node that gets the gradients
  };

  std::string name;
  number nodes = 0;
  std::vector<number> home;  // the node of each function
  std::vector<std::vector<edge>> next;
  std::vector<number> roots;  // functions of node 0
  std::vector<send> sends;
  std::vector<number> callers;  // by whose call each node has joined the context; shorter, or `none`, where nobody knows

  number function(number node);
  void connect(number from, number to);
  /// Adds a send to `target` to which no recv belongs: a result that is not used.
  void unused(number target);

  /// The node by whose call this node has joined the context, or `none`.
  number parent(number node) const { return node < callers.size() ? callers[node] : none; }
  /// How many gradients each function waits for.
  std::vector<number> owed() const;
  /// The functions that gradients reach from the roots.
  std::vector<bool> reached() const;
  /// The sends of each node.
  std::vector<std::vector<number>> sends_of_nodes() const;
  /// Whether each send gets gradients.
  bool has_unused() const;
};

/// Each stage calls the next one with its activations, and the loss comes back through all stages.
pass_shape pipeline_shape(pass_shape::number nodes);
/// Each node calls `fan` others and sums their results.
pass_shape tree_shape(pass_shape::number nodes, pass_shape::number fan = 8);
/// Node 0 sends the weights to all others, and each of them returns a loss.
pass_shape parameter_server_shape(pass_shape::number nodes);
/// Node 0 calls all other nodes. Each of them sends a part to every other one and combines the answers, as a layer of mixture of
/// experts does.
pass_shape all_to_all_shape(pass_shape::number nodes);
/// The activations go once around all nodes.
pass_shape ring_shape(pass_shape::number nodes);
/// Throws std::invalid_argument with the names of all shapes if there is none of that name.
pass_shape shape_of(const std::string& name, pass_shape::number nodes);
/// The names of all shapes.
const std::vector<std::string>& shape_names();

/// A graph drawn at random. A function in `unused_in` also has a send that gets no gradient; 0: none has.
pass_shape draw_shape(std::mt19937_64& random, pass_shape::number nodes, pass_shape::number functions, std::uint64_t unused_in);

/// What a pass costs, beside its messages.
struct pass_costs {
  std::int64_t function_ns = 100'000;   // CPU time of a function
  std::int64_t spread_percent = 50;     // a function takes up to this much more or less, drawn at random
  std::uint64_t payload_bytes = 4'096;  // of the gradients in a message

  std::string text() const;
};

/// How a pass went.
struct pass_result {
  bool succeeded = false;
  errc code = errc::none;
  std::string error;
  std::int64_t time_ns = 0;
  std::uint64_t largest_weight_bytes = 0;
};

/// One context and one backward pass over a shape, on the nodes of a simulated network. The decisions are those of the classes
/// of engine/protocol; simulation::pass_carrier does what graph tasks, context records and gateways do around them. Messages hold real
/// weights and have the bytes of real messages.
///   PM-1  with one seed and the same calls the pass is the same, event by event.
class pass_model : public std::enable_shared_from_this<pass_model>,
                   private simulation::pass_carrier<pass_model, pass_shape::number> {
 public:
  using number = pass_shape::number;

  struct terms {
    std::vector<std::size_t> at;  // the node of the network for each node of the shape; empty: the same number
    std::vector<node_id> ids;     // empty: numbers from 1 on
    context_id context{{1}, 1};
    pass_costs costs;
    std::int64_t deadline_ns = 60'000'000'000;
    bool fast = false;
    bool knows_all = true;  // whether the initiator knows all nodes of the context when the pass starts, or itself alone
    number throwing = pass_shape::none;  // the function that throws
    /// Whether a node of the shape holds another one for up. Empty: always.
    std::function<bool(number from, number to)> reaches;
    bool checks_weight = false;
  };

  pass_model(simulated_network& network, std::shared_ptr<const pass_shape> shape, terms how);

  /// Starts the pass on node 0. `ended` is called once, when the pass ends there.
  void start(std::function<void(const pass_result&)> ended);
  /// Node `at` hears that node `who` is unreachable or gone, or that it is up again.
  void peer_down(number at, number who);
  void peer_up(number at, number who);
  /// The process of the node has ended.
  void process_ended(number which);
  /// Node 0 releases the context on all nodes.
  void release();

  /// For tests: what checks the weight of the pass is wrong from now on.
  void take_weight() { flying_ -= 1; }

  bool is_over() const noexcept { return result_.has_value(); }
  const pass_result& result() const { return *result_; }
  /// Which of the protocol's promises is broken; empty if none is.
  std::string wrong() const;
  /// Whether the node takes part in the pass.
  bool holds_participant(number node) const { return states_[node].protocol.has_value(); }
  /// Whether the node may still run functions of the pass.
  bool runs_on(number node) const { return holds_participant(node) && !states_[node].protocol->over(); }
  std::uint64_t number_of_context() const noexcept { return how_.context.number; }
  const pass_shape& shape() const noexcept { return *shape_; }
  std::size_t host_of(number node) const { return how_.at.empty() ? node : how_.at[node]; }

 private:
  /// Weight as a sum of units of 2^-120.
  using weight = unsigned __int128;
  static constexpr std::uint32_t finest = 120;
  static constexpr pass_number the_pass{1};
  static constexpr std::int64_t abort_deadline_ns = 1'000'000'000;

  struct burst {
    number node;
    protocol::burst_share share;
    std::vector<number> ready;
    std::size_t next = 0;
    bool is_stopped = false;
  };
  struct node_state {
    std::optional<protocol::participant> protocol;
    std::shared_ptr<burst> away;
    std::vector<number> deliveries;  // for the next burst
    bool roots_due = false;          // for the next burst
    bool is_routed = false;          // whether messages of the pass reach this node
    bool is_barred = false;          // whether an abort has come: nothing begins any more
    bool is_released = false;        // whether the context was released here
  };

  // What the carrier asks of a world. There is one pass.
  friend pass_carrier;
  using kind = simulation::kind;
  void post(event what);
  bool reaches(number from, number to) const { return from == to || !how_.reaches || how_.reaches(from, to); }
  node_id id_of(number node) const { return how_.ids.empty() ? node_id{std::uint64_t{node} + 1} : how_.ids[node]; }
  number number_of(node_id who) const { return numbers_.at(who); }
  number parent_of(number node) const { return shape_->parent(node); }
  bool is_released(number node) const { return states_[node].is_released; }
  protocol::initiator* lead(pass_index) { return lead_ ? &*lead_ : nullptr; }
  protocol::participant* participant(number node, pass_index) {
    return states_[node].protocol ? &*states_[node].protocol : nullptr;
  }
  protocol::participant* routed(number node, pass_index) {
    return states_[node].is_routed ? &*states_[node].protocol : nullptr;
  }
  protocol::participant* join(number node, pass_index);
  protocol::participant* skip(number node, pass_index);
  void keep(const event& what);
  void forget(number node, pass_index) { states_[node].deliveries.clear(); }
  void run(number node, pass_index, protocol::participant::run_burst& what);
  void walk(number node, pass_index, const protocol::participant::run_walk& what);
  void stop(number node, pass_index) { states_[node].away->is_stopped = true; }
  void free(number node, pass_index pass) { forget(node, pass); }
  void ended(number node, pass_index);
  void unused(pass_index, const std::vector<node_id>&) {}
  void complete(pass_index, const std::vector<node_id>&);
  void handed_out(pass_shape::number, pass_index) {}
  void await_abort(pass_index, node_id who);
  void await_aborts(pass_index) { later(abort_deadline_ns); }
  void acted(number node, pass_index);
  void prunes(pass_index) {
    if (how_.fast) found_wrong("IN-4: the initiator prunes in fast mode");
  }
  void acted(pass_index) { is_weight_known_ = is_weight_known_ && lead_ && !lead_->aborting() && !lead_->result(); }

  message_id message_of(number send) const { return {std::uint64_t{send} + 1, id_of(shape_->sends[send].node)}; }
  static number send_of(const message_id& message) { return static_cast<number>(message.number - 1); }
  std::uint64_t bytes_of(const event& what);
  void later(std::int64_t ns);
  void begin(number node);
  void advance(const std::shared_ptr<burst>& work);
  bool emit(burst& work, number send, bool more);
  std::int64_t draw_function_ns();
  void settle(number function, bool given, std::vector<number>& ready);
  void returned(const std::shared_ptr<burst>& work, std::optional<protocol::failure> why);
  std::vector<message_id> recvs_from(std::vector<number> functions) const;
  protocol::call_tree_position_ptr position_in_calls(number node) const;
  void close(number node);
  void found_wrong(const std::string& what);
  weight weight_of(const weight_share& carried) const;

  simulated_network& network_;
  std::shared_ptr<const pass_shape> shape_;
  terms how_;
  std::map<node_id, number> numbers_;
  std::vector<std::vector<number>> sends_of_nodes_;
  std::vector<std::vector<number>> children_;  // of each node, in the tree of calls
  std::vector<node_state> states_;
  std::optional<protocol::initiator> lead_;
  std::vector<number> owed_;
  std::vector<std::uint8_t> runs_;
  std::vector<bool> given_;      // whether a gradient has come, of each function
  std::vector<bool> delivered_;  // of each send
  std::vector<bool> dropped_;    // of each send
  std::int64_t begun_ns_ = 0;
  std::uint64_t largest_weight_ = 0;
  std::uint64_t weightless_bytes_ = 0;
  std::uint64_t gradient_bytes_ = 0;
  std::optional<pass_result> result_;
  std::function<void(const pass_result&)> ended_;
  weight flying_ = 0;            // weight in messages and bursts
  bool is_weight_known_ = true;  // false once a participant has dropped weight, as it does when the pass is over there
  std::string wrong_;
};

}  // namespace troupe::simulation
