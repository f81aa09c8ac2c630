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

/// Registers the type under a name on a node, so that peers can create modules of it there.
void add_module_type(node& here, const std::string& type, std::function<std::shared_ptr<module>(const attributes&)> make);

/// A module that lives on another node (or this one).
///   RM-1  the module lives as long as a handle to it, on this node or on a node that it was lent to. When the last handle is gone
///         the module is dropped, and nobody waits for that. A node that goes down loses its handles.
///   RM-2  a handle may outlive the peer and the node.
class remote_module {
 public:
  /// Becomes a handle of the module. The last handle drops the module.
  remote_module(peer where, object_id id);

  /// The module that another node lent to this one. Blocks; throws troupe::error (misuse for a reference that can't be read,
  /// was accepted before or is another node's).
  static remote_module accept(node& here, const std::string& reference);
  /// A reference that node `to` can accept once: send the reference there as a value of a call. Until then the reference keeps the module alive as
  /// long as both nodes are up. Blocks; throws troupe::error.
  std::string lend(const peer& to) const;

  /// The same module with only these parameters and all its buffers, for an optimizer or gradients(). Blocks; throws troupe::error
  /// (misuse) for a name that the module does not have.
  remote_module select(const std::vector<std::string>& names) const;

  const peer& where() const noexcept;
  object_id id() const noexcept;

  /// Calls a method; joins the context of the calling thread.
  future<call_reply> call(const std::string& method, std::vector<at::Tensor> tensors = {}, attributes values = {}) const;

  /// Copies of the module's parameters. Blocks; throws troupe::error.
  named_tensors parameters() const;
  /// A copy of a parameter, with its current value, whose gradient is sent to its owner: the backward pass adds it to the
  /// parameter's gradient on the module's node. Outside a context it is a plain copy. Blocks; throws troupe::error (misuse) for a
  /// name that the module does not have.
  at::Tensor parameter(const std::string& name) const;
  /// Overwrites parameters by name; every name, shape and dtype must fit, or nothing is written. Blocks; throws troupe::error.
  void set_parameters(const named_tensors& values) const;
  /// Overwrites buffers by name, in the same way.
  named_tensors buffers() const;
  void set_buffers(const named_tensors& values) const;
  /// Copies of the gradients that the context gathered for its parameters, by parameter name; undefined where there is none.
  /// The context must be open on this thread. Blocks; throws troupe::error.
  named_tensors gradients(const context& pass) const;

 private:
  void overwrite(const char* function, const named_tensors& values) const;

  struct lifetime;
  std::shared_ptr<lifetime> lifetime_;
};

}  // namespace troupe
