// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include <troupe/actors/future.hpp>
#include <troupe/actors/node.hpp>
#include <troupe/messages/ids.hpp>

namespace troupe {

class call_scope;

namespace engine {
class gradient_table;
}

/// How a backward pass runs.
struct backward_options {
  bool keep_graph = false;
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

  /// Runs backward from the roots on every node that took part. Gradients gather in the context, never in `.grad`.
  /// Misuse (undefined or non-scalar root without a gradient ...) throws at once; what happens in the pass fails the future.
  future<done> backward(std::vector<at::Tensor> roots, backward_options options = {});

  /// The gradients gathered on this node so far.
  std::shared_ptr<const engine::gradient_table> gradients() const;

  /// The gradient of a leaf of this node; undefined if it got none.
  at::Tensor gradient(const at::Tensor& leaf) const;

  /// The context open on this thread, or none.
  static context_id current() noexcept;

 private:
  node* here_;
  context_id id_;
  std::unique_ptr<call_scope> scope_;
};

}  // namespace troupe
