// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include <ATen/core/Tensor.h>

#include <troupe/actors/future.hpp>
#include <troupe/actors/node.hpp>
#include <troupe/messages/ids.hpp>

namespace troupe::support {

class call_scope;

}  // namespace troupe::support

namespace troupe {

namespace engine {
class gradient_table;
}

/// What a pass does if the loss does not use a result of a call. Both modes give the same gradients where all results are used.
enum class pass_mode {
  smart,  // finishes all the same: looks for unused results once all else is done
  fast,   // fails once all else is done, if any result in the context is unused, earlier passes included
};

/// How a backward pass runs.
struct backward_options {
  bool keep_graph = false;    // so that another pass may run over it
  bool create_graph = false;  // records the pass on every node, so that gradients can be differentiated; keeps the graph
  pass_mode mode = pass_mode::smart;
  std::vector<at::Tensor> gradients;                  // of the roots; empty: ones for scalar roots
  std::optional<std::chrono::milliseconds> deadline;  // default: the node's
};

/// A distributed autograd context: one forward and its backward passes across nodes. It is open from construction to
/// destruction on the thread that made it: calls made there meanwhile join it. Leaving the scope releases it on every node that
/// took part.
class context {
 public:
  explicit context(node& here);
  ~context();
  context(const context&) = delete;
  context& operator=(const context&) = delete;

  context_id id() const noexcept { return id_; }

  /// Runs backward from the roots on every node that took part. Gradients gather in the context, never in `.grad`. The functions
  /// from the roots to other nodes run on the calling thread before backward() returns. Later functions of this node run on the
  /// thread that waits in `get()`, or on a thread of the node. Misuse (undefined or non-scalar root without a gradient ...) throws
  /// at once; errors during the pass fail the future.
  future<done> backward(std::vector<at::Tensor> roots, backward_options options = {});

  /// Whether a pass has begun and is not over yet.
  bool running() const;
  /// Whether a pass has completed.
  bool has_completed_pass() const;

  /// The gradients that completed passes have gathered on this node; empty before the first pass has completed (see
  /// has_completed_pass). After a pass with create_graph the gradients have a graph over all nodes.
  std::shared_ptr<const engine::gradient_table> gradients() const;

  /// The gradient of a leaf of this node; undefined if the leaf got none. No later pass changes the returned tensor.
  at::Tensor gradient(const at::Tensor& leaf) const;

  /// The context open on this thread, or none.
  static context_id current() noexcept;

 private:
  struct parts;
  node* here_;
  context_id id_;
  std::thread::id made_by_ = std::this_thread::get_id();
  std::unique_ptr<parts> parts_;
  std::unique_ptr<support::call_scope> scope_;
};

}  // namespace troupe
