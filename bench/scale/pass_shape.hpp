// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace troupe::bench {

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
/// Node 0 calls all others. Each of these sends a part to each other one and combines what comes back, as layers with experts do.
pass_shape all_to_all_shape(pass_shape::number nodes);
/// The activations go once around all nodes.
pass_shape ring_shape(pass_shape::number nodes);
/// Throws std::invalid_argument with the names of all shapes if there is none of that name.
pass_shape shape_of(const std::string& name, pass_shape::number nodes);
/// The names of all shapes.
const std::vector<std::string>& shape_names();

/// A graph drawn at random. A function in `unused_in` also has a send that gets no gradient; 0: none has.
pass_shape draw_shape(std::mt19937_64& random, pass_shape::number nodes, pass_shape::number functions, std::uint64_t unused_in);

}  // namespace troupe::bench
