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
/// made it, from construction to destruction: calls of this thread join the context. The destructor releases the context on
/// every node that took part.
class context {
 public:
  /// `format`: in which the large float32 tensors of the context's calls, answers and gradients travel, on all of its nodes. What the
  /// formats keep of a tensor, and which tensors travel exactly all the same, is listed at `wire_format`. Weights, buffers and gradients
  /// that a program asks for (remote_module, optimizer) always travel exactly, as does what goes to a node of a version that does not know
  /// the format.
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
  /// with create_graph the gradients have a graph over all nodes.
  std::shared_ptr<const engine::gradient_table> gradients() const;

  /// The gradient of a leaf of this node; undefined if the leaf got no gradient. No later pass changes the returned tensor.
  at::Tensor gradient(const at::Tensor& leaf) const;

  /// The context that is open on this thread, or none.
  static context_id current() noexcept;

 private:
  struct parts;
  node* here_;
  context_id id_;
  std::unique_ptr<parts> parts_;
  std::unique_ptr<support::call_scope> scope_;
};

}  // namespace troupe
