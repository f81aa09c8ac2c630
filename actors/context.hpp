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

/// What a pass does if the loss does not use every result of the context's calls. If the loss uses all of them, both modes give
/// the same gradients.
enum class pass_mode {
  smart,  // the pass completes: when nothing else is left to do, it looks for unused results
  fast,   // the pass fails when nothing else is left to do, also if an earlier pass used the result
};

/// How a backward pass runs.
struct backward_options {
  bool keep_graph = false;    // keeps the saved tensors: another pass may run over the graph
  bool create_graph = false;  // records the pass on every node, so its gradients can be differentiated; implies keep_graph
  pass_mode mode = pass_mode::smart;
  std::vector<at::Tensor> gradients;                  // gradients of the roots; empty: 1 for scalar roots
  std::optional<std::chrono::milliseconds> deadline;  // empty: settings::deadline
};

/// A distributed autograd context: one forward and its backward passes across nodes. The context is open on the thread that
/// made it, from construction to destruction: calls of this thread join the context. Calls of other threads join by a branch
/// and a scope. The destructor releases the context on every node that took part. Hooks and functions of a pass may open other
/// contexts.
///   HP-1  hooks and functions that a pass of the context runs have the context on their thread, on every node and on pass
///         workers. Their calls join the context, and with create_graph the graph of the pass; they travel exactly unless a
///         call names a format.
///   HP-2  in a hook, gradient() and gradients() return what completed passes have gathered, and what the running pass has
///         gathered on this node before the hook. With pass workers, other functions run at the same time: the hook may or may
///         not see gradients that come meanwhile.
class context {
 public:
  class branch;
  class scope;

  /// `format`: the format in which the large float32 tensors of the context's calls, answers and gradients travel, on all nodes
  /// of the context. `wire_format` lists what each format keeps of a tensor, and which tensors travel exactly in any format.
  /// Weights, buffers and gradients that a program asks for (remote_module, optimizer) always travel exactly. So do calls of
  /// hooks (HP-1), and all tensors to a node of a version that does not know the format.
  explicit context(node& here, wire_format format = wire_format::exact);
  ~context();
  context(const context&) = delete;
  context& operator=(const context&) = delete;

  context_id id() const noexcept { return id_; }

  /// Runs backward from the roots on every node that took part. Gradients gather in the context, never in `.grad`. The
  /// functions from the roots to other nodes run on the calling thread before backward() returns, except in a continuation, or
  /// while gradients of an earlier pass are not gathered. Later functions of this node run on the thread that waits in `get()`,
  /// or on a thread of the node. Misuse (for example a root that is undefined, or that is not scalar and has no gradient)
  /// throws at once. Errors during the pass fail the future.
  future<done> backward(std::vector<at::Tensor> roots, backward_options options = {});

  /// Whether a pass has begun and is not over yet.
  bool running() const;
  /// Whether a pass has completed.
  bool has_completed_pass() const;

  /// The gradients that completed passes have gathered on this node; empty while has_completed_pass() is false. After a pass
  /// with create_graph the gradients have a graph over all nodes. In a hook: see HP-2.
  std::shared_ptr<const engine::gradient_table> gradients() const;

  /// The gradient of a leaf of this node; undefined if the leaf got no gradient. No later pass changes the returned tensor.
  at::Tensor gradient(const at::Tensor& leaf) const;

  /// The context that is open on this thread by a context, a scope or a call of another node, or none.
  static context_id current() noexcept;

 private:
  std::shared_ptr<nodes::node_link> here_;
  context_id id_;
  std::unique_ptr<support::call_scope> scope_;
};

/// A part of a context's program that another thread will run: work for a pool, or for std::async.
///   BG-1  a branch takes the next place of the program that makes it. What its scope records and calls belongs at this place,
///         whichever thread opens the scope, and whenever: sums have the order of one thread that runs each part where its
///         branch is made.
class context::branch {
 public:
  /// A branch of the context that is open on this thread: by a context, by a scope, or in a function that another node calls.
  /// `here`: the node of the program or function. Throws troupe::error: misuse if no context is open on this thread for this
  /// node, unknown_context if it was released.
  explicit branch(node& here);

 private:
  friend class scope;
  struct state;
  std::shared_ptr<state> state_;  // shared by copies
};

/// While a scope lives, the context of its branch is open on this thread.
///   BG-2  calls of the thread join the context of the branch, with the deadline and the wire format of the place where the
///         branch was made.
///   BG-3  each branch is opened once, in one scope. A scope of a context that was released throws. Calls in a scope that
///         outlives its context fail.
/// Modes of libtorch (torch::NoGradGuard) belong to the thread, and do not come with the branch.
class context::scope {
 public:
  /// Throws troupe::error: misuse if the branch was opened before, unknown_context if its context was released.
  explicit scope(const branch& part);
  ~scope();
  scope(const scope&) = delete;
  scope& operator=(const scope&) = delete;

 private:
  std::shared_ptr<branch::state> part_;
  std::unique_ptr<support::call_scope> scope_;
};

}  // namespace troupe
