// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include <troupe/actors/node.hpp>
#include <troupe/actors/support/call_scope.hpp>
#include <troupe/actors/support/thread_modes.hpp>
#include <troupe/messages/messages.hpp>

/// For messages of your own typed actors. An autograd_message in a request and in its answer joins the graphs of two nodes, as
/// a call does. The sender of the request makes the autograd_message with `join_graphs`. The handler of the request opens a
/// `joined_scope` over the autograd_message and makes the autograd_message of the answer. The sender gets the tensors of the
/// answer from `joined_tensors`.
namespace troupe {

namespace engine {
class gradient_table;
}

/// Makes an autograd_message of tensors for an actor on node `to`. The tensors join the context that is open on this thread.
/// Outside any context they are detached, and the node's log warns of those that require grad (settings::warn_detached). Large
/// float32 tensors travel in the context's wire format. Send each autograd_message once. Waits until the tensors of
/// accelerators are on the host. Throws troupe::error (unsupported_tensor) if a tensor can't travel (the text has its index),
/// and for more than 3.75 GiB of tensors. The device map to the node (peer::with_devices, settings::device_maps) is applied to
/// the tensors; to the tensors of the answer, the other node applies its own map. All autograd_messages of one request may have
/// at most 4 GiB together: the receiver can't read a larger request, and the request fails on the receiver's node.
autograd_message join_graphs(const peer& to, std::vector<at::Tensor> tensors);

/// The tensors of a message from another node or from this node. Tensors that required grad belong to the graph of the sender.
/// To be called once for each message, on the thread that computes with the tensors. Throws troupe::error if this node does not
/// have the device of a tensor.
std::vector<at::Tensor> joined_tensors(node& here, autograd_message message);

/// Tensor `index` of a message, counted from 0; throws troupe::error (misuse) if the message has fewer tensors. To be called
/// once for each message, instead of joined_tensors.
at::Tensor joined_tensor(node& here, autograd_message message, std::size_t index);

/// While a joined_scope lives, the functions that its thread records and the calls that its thread makes belong to the context
/// of the message.
///   JS-1  functions recorded in the scope have the message's place in the program: the order of sums does not depend on when
///         messages arrive.
///   JS-2  a message without a context, or without tensors that require grad, is plain: its tensors join nothing.
///   JS-3  if the sender's thread was in no-grad mode, in inference mode or under an autocast that it carries
///         (settings::carry_autocast) when it made the message, the thread has these modes in the scope. Otherwise the thread
///         keeps its own modes.
class joined_scope {
 public:
  joined_scope(node& here, autograd_message message);

  /// The tensors of the message, as joined_tensors returns them.
  const std::vector<at::Tensor>& tensors() const noexcept { return tensors_; }
  /// Tensor `index` of the message, counted from 0; throws troupe::error (misuse) if the message has fewer tensors.
  at::Tensor tensor(std::size_t index) const;

  /// The gradients that completed passes of the message's context left on this node, for an actor that steps its own
  /// parameters. Asks the node that opened the context which passes have completed. Blocks; throws troupe::error (misuse if the
  /// message has no context or no pass of the context has completed; peer_down ...).
  std::shared_ptr<const engine::gradient_table> gradients() const;

  /// Makes the autograd_message for the answer to the sender of the message. Applies the device map of this node's settings to
  /// the sender.
  autograd_message reply(std::vector<at::Tensor> tensors) const;

 private:
  std::shared_ptr<nodes::node_link> here_;
  node_id from_;
  support::call_scope scope_;
  support::modes_scope modes_;
  std::vector<at::Tensor> tensors_;
};

}  // namespace troupe
