// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include <troupe/actors/node.hpp>
#include <troupe/actors/support/call_scope.hpp>
#include <troupe/messages/messages.hpp>

/// For messages of your own typed actors: an autograd_message in a request and in its answer joins the graphs of two nodes, as
/// a call does. The sender makes one with `join_graphs`; the receiver's handler opens a `joined_scope` over it; the sender of
/// the request takes the answer's tensors with `joined_tensors`.
namespace troupe {

namespace engine {
class gradient_table;
}

/// The tensors for an actor on node `to`, joined to the context that is open on this thread; without one they travel plain.
/// Make it before you send the message, and send each once. Waits for tensors of accelerators to be on the host. Throws
/// troupe::error (unsupported_tensor) for a tensor that can't travel, by its number, and for more than 3.75 GiB together. A request
/// that holds several of these has at most 4 GiB: one with more fails at the receiver, which can't read it.
autograd_message join_graphs(const peer& to, std::vector<at::Tensor> tensors);

/// The tensors of a message that came from another node, or from this one; those that require grad belong to the graph there.
/// Call it once a message, on the thread that computes with them. Throws troupe::error for a device that is not here.
std::vector<at::Tensor> joined_tensors(node& here, autograd_message message);

/// One tensor of a message, counted from 0; throws troupe::error (misuse) if fewer came. To be called once a message, too.
at::Tensor joined_tensor(node& here, autograd_message message, std::size_t index);

/// While a scope lives, the functions that its thread records and the calls that it makes belong to the context of the message.
///   JS-1  functions recorded in the scope have the message's place in the program: sums do not depend on when messages arrive.
///   JS-2  a message without a context, or without tensors that require grad, is plain: its tensors join nothing.
class joined_scope {
 public:
  joined_scope(node& here, autograd_message message);

  /// The tensors of the message, as joined_tensors returns them.
  const std::vector<at::Tensor>& tensors() const noexcept { return tensors_; }
  /// One tensor of the message, counted from 0; throws troupe::error (misuse) if fewer came.
  at::Tensor tensor(std::size_t index) const;

  /// The gradients that the completed passes of the message's context left on this node: for an actor that steps its own
  /// parameters. Asks the node where the context was opened. Blocks; throws troupe::error (misuse for a message without a
  /// context, and before a pass of it has completed; peer_down ...).
  std::shared_ptr<const engine::gradient_table> gradients() const;

  /// Makes the autograd_message of the answer to the message's sender.
  autograd_message reply(std::vector<at::Tensor> tensors) const;

 private:
  node* here_;
  node_id from_;
  support::call_scope scope_;
  std::vector<at::Tensor> tensors_;
};

}  // namespace troupe
