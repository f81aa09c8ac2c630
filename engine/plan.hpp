// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include <torch/csrc/autograd/edge.h>
#include <torch/csrc/autograd/function.h>

#include <troupe/engine/node_map.hpp>
#include <troupe/engine/send_backward.hpp>
#include <troupe/engine/torch_compat.hpp>

namespace troupe::engine {

struct send_source;
class recording_order;

/// The graph that a pass runs, with functions numbered from 0.
///   PL-1  the plan is built in one walk without recursion. The cost per function does not depend on the depth of the graph.
///   PL-2  with inputs, a function executes exactly if it lies on a path from a source (a root or a send) to an input.
///   PL-3  the order of recordings gives each function its rank. Without recordings, a function has the rank of the first
///         source that reaches it: the roots come first, then the sends in ascending rank.
///   PL-4  each function is one vertex. The walk looks up the numbers only of functions to which several pointers lead: every
///         edge and root has a pointer, so the walk meets all other functions once.
///   PL-5  a question of find() costs as much in a large graph as in a small one, except for the first question. A plan that is
///         never asked does not number its functions.
class plan {
 public:
  static constexpr std::uint32_t none = 0xffffffff;

  /// Where an output of a function goes: input `input` of vertex `vertex`. `vertex` is `none` if nothing takes the output.
  struct edge {
    std::uint32_t vertex;
    std::uint32_t input;
  };

  enum mark : std::uint16_t {
    needed = 1,    // the function runs
    captured = 2,  // the pass returns the gradient of one of the function's inputs
    source = 4,    // a send: the outputs come from a peer
  };

  struct vertex {
    torch::autograd::Node* function;
    std::uint64_t sequence;
    std::uint32_t first_edge;
    std::uint32_t edge_count;
    std::uint32_t first_slot;
    std::uint32_t slot_count;
    std::uint32_t missing;  // gradients that are still to come, one per edge
    std::uint32_t rank;     // dense: 0, 1, ... in ascending order
    std::uint16_t marks;
    bool reached;        // a gradient, defined or not, has come. Not a mark, because workers read marks at the same time
    std::uint32_t send;  // if the vertex is a source: its index in the list of sends

    bool executes() const noexcept { return (marks & (needed | captured)) != 0; }
  };

  /// A captured input: the gradient at `input` of `vertex` becomes result `output` of the pass.
  struct capture {
    std::uint32_t vertex;
    std::uint32_t input;
    std::uint32_t output;
  };

  plan() = default;

  /// If `inputs` is empty, every function executes. `capturing`: the pass returns the gradients of the inputs; otherwise the
  /// pass runs the functions of the inputs.
  plan(const torch::autograd::edge_list& roots, const std::vector<send_source>& sends, const torch::autograd::edge_list& inputs,
       bool capturing) {
    build(roots, sends, inputs, capturing, nullptr);
  }

  /// Replaces this plan by the plan of another graph and reuses the memory.
  void build(const torch::autograd::edge_list& roots, const std::vector<send_source>& sends,
             const torch::autograd::edge_list& inputs, bool capturing, const recording_order* order);

  /// Returns the vertex of a function; `none` if build() did not find the function. Any thread may ask, while none builds. The
  /// first question of a plan without inputs numbers all functions (PL-5).
  std::uint32_t find(const torch::autograd::Node& function) const;

  /// Returns the bytes of memory that the plan holds.
  std::size_t memory() const noexcept;

  std::vector<vertex> vertices;
  std::vector<edge> edges;
  std::vector<edge> roots;           // by root: where its gradient goes
  std::vector<std::uint32_t> sends;  // by send: its vertex
  std::vector<capture> captures;     // sorted by vertex
  std::uint32_t slot_count = 0;      // the number of inputs of all vertices
  bool leaves_out_outputs = false;   // because of the inputs, some function that runs has an output that nothing takes

 private:
  std::uint32_t add(const node_pointer& function, std::uint32_t rank);
  std::uint32_t append(torch::autograd::Node* function, std::uint32_t rank);
  void add_sends(const std::vector<send_source>& sources, std::uint64_t lowest);
  void walk(std::uint32_t rank, std::uint64_t lowest);
  void load_ahead(std::size_t at) const;
  void prune(const torch::autograd::edge_list& inputs, bool capturing);
  void mark_ancestors(std::vector<std::uint32_t> marked);

  void number_all() const;

  mutable node_map numbers_;                    // of the functions that build() may meet again; with inputs, of all functions
  bool numbers_all_ = false;                    // build() numbers all functions
  mutable std::atomic<bool> finds_all_{false};  // all functions are numbered
  mutable std::mutex numbering_;
  std::size_t walked_ = 0;  // the number of vertices whose edges are known
};

}  // namespace troupe::engine
