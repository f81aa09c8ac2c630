// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/contexts_test.cpp, tests/actors/gathering_test.cpp, tests/actors/misuse_test.cpp
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include <troupe/actors/future.hpp>
#include <troupe/actors/node.hpp>
#include <troupe/messages/ids.hpp>
#include <troupe/messages/wire_format.hpp>

namespace troupe::support {

class call_scope;

}  // namespace troupe::support

namespace troupe::nodes {

class node_link;

}  // namespace troupe::nodes

namespace troupe {

namespace engine {
class gradient_table;
}

/// Says what a pass does if the loss does not use every result of the context's calls. If the loss uses all results, both modes
/// give the same gradients.
enum class pass_mode {
  smart,  // once nothing is left to run, the pass looks for unused results, leaves them out and completes
  fast,   // once nothing is left to run, a pass with an unused result fails, even if an earlier pass used the result
};

/// How a backward pass runs.
struct backward_options {
  bool keep_graph = false;    // keeps the saved tensors, so another pass can run over the graph
  bool create_graph = false;  // records the pass on every node, so its gradients can be differentiated; implies keep_graph
  pass_mode mode = pass_mode::smart;
  std::vector<at::Tensor> gradients;                  // gradients of the roots; empty: 1 for scalar roots
  std::optional<std::chrono::milliseconds> deadline;  // empty: settings::deadline
};

/// A distributed autograd context: one forward and its backward passes across nodes. The context is open on the thread that
/// made it, from construction to destruction: calls of this thread join the context. Calls of other threads join the context
/// through a `branch` and a `scope`. The destructor releases the context on every node that took part. Hooks and functions of a
/// pass may open other contexts.
///   HP-1  while a pass of the context runs a hook or a function, the context is open on the thread, on every node and on pass
///         workers. Calls of the hook or function join the context and, with create_graph, the graph of the pass. Their tensors
///         travel exactly, unless the call names a format.
///   HP-2  in a hook, gradient() and gradients() return the gradients of completed passes, plus those that the running pass has
///         gathered on this node before the hook. With pass workers, other functions run at the same time as the hook: the hook
///         may or may not see their gradients.
class context {
 public:
  class branch;
  class scope;

  /// `format`: the format in which the large float32 tensors of the context's calls, answers and gradients travel, on all nodes
  /// of the context. `wire_format` lists what each format keeps of a tensor, and which tensors travel exactly in any format.
  /// Weights, buffers and gradients that a program asks for (remote_module, optimizer) always travel exactly. So do the tensors
  /// of calls that hooks make (HP-1), and all tensors to a node that is not connected yet, or whose version of troupe does not
  /// know the format.
  explicit context(node& here, wire_format format = wire_format::exact);
  ~context();
  context(const context&) = delete;
  context& operator=(const context&) = delete;

  context_id id() const noexcept { return id_; }

  /// Runs backward from the roots on every node that took part. Gradients gather in the context, never in `.grad`. The first
  /// functions, from the roots to the edges to other nodes, run on the calling thread before backward() returns. They run on
  /// another thread if a continuation calls backward(), or if gradients of an earlier pass are not gathered yet. Later
  /// functions of this node run on the thread that waits in `get()`, or on a thread of the node. Misuse (for example a root
  /// that is undefined, or that is not scalar and has no gradient) throws at once. Errors during the pass fail the future.
  future<done> backward(std::vector<at::Tensor> roots, backward_options options = {});

  /// Whether a pass of the context is running.
  bool running() const;
  /// Whether a pass has completed.
  bool has_completed_pass() const;

  /// The gradients that completed passes have gathered on this node; empty while has_completed_pass() is false. After a pass
  /// with create_graph the gradients have a graph over all nodes. In a hook: see HP-2.
  std::shared_ptr<const engine::gradient_table> gradients() const;

  /// The gradient of a leaf of this node; undefined if the leaf got no gradient. No later pass changes the returned tensor.
  at::Tensor gradient(const at::Tensor& leaf) const;

  /// The context that is open on this thread, or none. A `context`, a `scope` or a call of another node has opened it.
  static context_id current() noexcept;

 private:
  std::shared_ptr<nodes::node_link> here_;
  context_id id_;
  std::unique_ptr<support::call_scope> scope_;
};

/// A part of a context's program that another thread will run: work for a pool, or for std::async.
///   BG-1  a branch takes the next place in the program of the thread that makes it. Functions and calls of its scope have this
///         place, whichever thread opens the scope, and whenever. So sums have the same order as if one thread ran each part at
///         the point where its branch is made.
class context::branch {
 public:
  /// Makes a branch of the context that is open on this thread. A `context`, a `scope` or a call of another node has opened it.
  /// `here`: the node on which the program or function runs. Throws troupe::error: misuse if no context is open on this thread
  /// for this node, unknown_context if it was released.
  explicit branch(node& here);

 private:
  friend class scope;
  struct state;
  std::shared_ptr<state> state_;  // shared by copies
};

/// While a scope lives, the context of its branch is open on this thread.
///   BG-2  calls of the thread join the context of the branch. They have the deadline and the wire format that the code had
///         when it made the branch.
///   BG-3  each branch is opened once, in one scope. A scope of a context that was released throws. Calls in a scope that
///         outlives its context fail.
/// Modes of libtorch (torch::NoGradGuard) belong to a thread: the branch does not carry them to the thread of the scope.
class context::scope {
 public:
  /// Throws troupe::error: misuse if the branch was opened before, unknown_context if its context was released.
  explicit scope(const branch& of);
  ~scope();
  scope(const scope&) = delete;
  scope& operator=(const scope&) = delete;

 private:
  std::shared_ptr<branch::state> branch_;
  std::unique_ptr<support::call_scope> scope_;
};

}  // namespace troupe
