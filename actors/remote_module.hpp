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
///   RM-1  it lives as long as one handle does, here or on a node that it was lent to; the last one gone, it is dropped there
///         without waiting. Handles of a node that went down are gone.
///   RM-2  a handle may outlive the peer and the node.
class remote_module {
 public:
  /// Takes the module over: its last handle drops it.
  remote_module(peer where, object_id id);

  /// The module that another node lent to this one. Blocks; throws troupe::error (misuse for a reference that can't be read,
  /// was taken before or is another node's).
  static remote_module take(node& here, const std::string& reference);
  /// A reference for node `to` to take, once: send it there as a value of a call. Until then it keeps the module alive, as long
  /// as both nodes are up. Blocks; throws troupe::error.
  std::string lend(const peer& to) const;

  /// The same module with these parameters alone and all its buffers, for an optimizer or gradients(). Blocks; throws
  /// troupe::error (misuse) for a name that it does not have.
  remote_module select(const std::vector<std::string>& names) const;

  const peer& where() const noexcept;
  object_id id() const noexcept;

  /// Calls a method; joins the context of the calling thread.
  future<call_reply> call(const std::string& method, std::vector<at::Tensor> tensors = {}, attributes values = {}) const;

  /// Copies of its parameters. Blocks; throws troupe::error.
  named_tensors parameters() const;
  /// A parameter by reference, with its value of now: the gradient of what is computed with it goes to the parameter, where it
  /// lives. Inside a context; outside any it is a copy. Blocks; throws troupe::error (misuse) for a name it does not have.
  at::Tensor parameter(const std::string& name) const;
  /// Overwrites parameters by name; every name, shape and dtype must fit, or nothing is written. Blocks; throws troupe::error.
  void set_parameters(const named_tensors& values) const;
  /// The same for its buffers.
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
