// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <vector>

#include <torch/csrc/autograd/edge.h>
#include <torch/csrc/autograd/function.h>

#include <troupe/engine/node_map.hpp>
#include <troupe/engine/send_backward.hpp>

namespace troupe::engine {

struct send_source;
class recording_order;

/// The graph that a pass runs, numbered densely.
///   PL-1  one walk without recursion, whose cost per function does not depend on depth.
///   PL-2  with inputs, exactly what lies on a way from a source to one of them executes.
///   PL-3  a function has the rank that the order of recordings gives it; without one, that of the first source that reaches
///         it, sources taken in ascending rank, roots first.
class plan {
 public:
  static constexpr std::uint32_t none = 0xffffffff;

  /// Where an output goes: a vertex, or none where nothing takes it, and its input.
  struct edge {
    std::uint32_t vertex;
    std::uint32_t input;
  };

  enum mark : std::uint16_t {
    needed = 1,    // its function runs
    captured = 2,  // one of its inputs is an answer of the pass
    source = 4,    // a send: its outputs come from a peer
  };

  struct vertex {
    torch::autograd::Node* function;
    std::uint64_t sequence;
    std::uint32_t first_edge;
    std::uint32_t edge_count;
    std::uint32_t first_slot;
    std::uint32_t slot_count;
    std::uint32_t missing;  // gradients yet to come, counted by edges
    std::uint32_t rank;     // dense: 0, 1, ... by ascending rank
    std::uint16_t marks;
    bool reached;        // a gradient has come, defined or not; not a mark, for workers read those while a pass sets this
    std::uint32_t send;  // of a source: its place in the list of sends

    bool executes() const noexcept { return (marks & (needed | captured)) != 0; }
  };

  /// An input of the pass that is captured: the gradient at `input` of `vertex` is the answer `output`.
  struct capture {
    std::uint32_t vertex;
    std::uint32_t input;
    std::uint32_t output;
  };

  /// Nothing to run.
  plan() = default;

  /// `inputs` empty: everything executes. `capturing`: the inputs are answers, else functions to run.
  plan(const torch::autograd::edge_list& roots, const std::vector<send_source>& sends, const torch::autograd::edge_list& inputs,
       bool capturing) {
    build(roots, sends, inputs, capturing, nullptr);
  }

  /// Makes another plan of this one, in the memory that it has.
  void build(const torch::autograd::edge_list& roots, const std::vector<send_source>& sends,
             const torch::autograd::edge_list& inputs, bool capturing, const recording_order* order);

  /// The vertex of a function, or none where the walk did not meet it.
  std::uint32_t find(const torch::autograd::Node& function) const { return numbers_.find(&function, none); }

  /// Bytes that it holds on to.
  std::size_t memory() const noexcept;

  std::vector<vertex> vertices;
  std::vector<edge> edges;
  std::vector<edge> roots;           // where each root gradient goes
  std::vector<std::uint32_t> sends;  // the vertex of each send
  std::vector<capture> captures;     // by vertex
  std::uint32_t slot_count = 0;      // inputs of all vertices
  bool leaves_out_outputs = false;   // some function that runs has outputs which nothing takes, because of the inputs

 private:
  std::uint32_t add(torch::autograd::Node* function, std::uint32_t rank);
  void add_sends(const std::vector<send_source>& sources, std::uint64_t lowest);
  void walk(std::uint32_t rank, std::uint64_t lowest);
  void load_ahead(std::size_t at) const;
  void prune(const torch::autograd::edge_list& inputs, bool capturing);
  void mark_ancestors(std::vector<std::uint32_t> marked);

  node_map numbers_;
  std::size_t walked_ = 0;  // vertices whose edges are known
};

}  // namespace troupe::engine
