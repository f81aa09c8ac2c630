// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <troupe/actors/context.hpp>
#include <troupe/actors/module.hpp>
#include <troupe/actors/node.hpp>

namespace troupe {

/// Registers a module type under a name on a node. Peers can then create modules of this type on the node.
void add_module_type(node& here, const std::string& type, std::function<std::shared_ptr<module>(const attributes&)> make);

/// A handle of a module that lives on another node, or on this node.
///   RM-1  the module lives as long as a handle exists on this node or on a node to which the module was lent. Handles on a
///         node that is gone do not count. Without a handle the module is dropped; the destructor of a handle does not wait
///         for the drop.
///   RM-2  a handle may outlive the peer and the node.
///   RM-3  set_state() and set_parameters() accept the result of state(), buffers included.
///   RM-4  in a continuation, which can't wait, functions that block throw troupe::error (misuse) before they send anything.
///   RM-5  a change (set_parameters(), set_buffers(), set_state(), train(), eval()) that got no answer in time may happen
///         later. It never happens after a later change by a handle on the same node with the same id (select() makes another
///         id). Changes that two threads make at the same time have no order.
class remote_module {
 public:
  /// Makes the first handle of the module. Copies of the handle share the module; the end of the last copy drops it.
  remote_module(peer where, object_id id);

  /// Returns a handle of the module that another node lent to this node. Blocks; throws troupe::error (misuse if the reference
  /// can't be read, was accepted before, or is for another node).
  static remote_module accept(node& here, const std::string& reference);
  /// A reference that node `to` can accept once; send it to `to` as a value of a call. Until `to` accepts the reference, the
  /// reference keeps the module alive, as long as both nodes are up. Blocks; throws troupe::error.
  std::string lend(const peer& to) const;

  /// Returns a handle of the same module that has only these parameters, and all buffers: for an optimizer or for gradients().
  /// Blocks; throws troupe::error (misuse) if the module has no parameter of such a name.
  remote_module select(const std::vector<std::string>& names) const;

  /// Returns a handle of the same module whose calls use the device map `map`: see peer::with_devices. Both handles own the
  /// module.
  remote_module with_devices(device_map map) const;

  const peer& where() const noexcept;
  object_id id() const noexcept;

  /// Calls a method of the module. The call joins the context of the calling thread. `format`: see peer::call.
  future<call_reply> call(const std::string& method, std::vector<at::Tensor> tensors = {}, attributes values = {},
                          std::optional<wire_format> format = {}) const;

  /// Copies of the module's parameters. Blocks; throws troupe::error.
  named_tensors parameters() const;
  /// A copy of a parameter with its current value. The backward pass adds the gradient of the copy to the gradient of the
  /// parameter, on the module's node. Outside a context the copy has no such link. Blocks; throws troupe::error (misuse) if the
  /// module has no parameter of this name.
  at::Tensor parameter(const std::string& name) const;
  /// Overwrites parameters, and buffers if `values` has some, by name. If a name, shape or dtype does not fit, nothing is
  /// written. Blocks; throws troupe::error.
  void set_parameters(const named_tensors& values) const;
  /// Copies of the module's buffers. Blocks; throws troupe::error.
  named_tensors buffers() const;
  /// Overwrites buffers by name, as set_parameters does.
  void set_buffers(const named_tensors& values) const;
  /// Copies of the parameters, then of the buffers, as in PyTorch's state_dict. Blocks; throws troupe::error.
  named_tensors state() const;
  /// Overwrites all parameters and buffers. If one is missing in `values`, or a name, shape or dtype does not fit, nothing is
  /// written.
  void set_state(const named_tensors& values) const;
  /// Turns the module's training mode on or off (module::train). Until the first train() or eval(), a TorchScript module has
  /// the mode in which it was sent. Blocks; throws troupe::error (misuse) if the module has no mode.
  void train(bool on = true) const;
  void eval() const { train(false); }
  /// Copies of the gradients that the context gathered for the module's parameters, by parameter name; undefined for a
  /// parameter without a gradient. The context must be open on this thread. Blocks; throws troupe::error.
  named_tensors gradients(const context& pass) const;

 private:
  struct lifetime;
  explicit remote_module(std::shared_ptr<lifetime> shared) : lifetime_(std::move(shared)) {}
  std::shared_ptr<lifetime> lifetime_;
};

}  // namespace troupe
