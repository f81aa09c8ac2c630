// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <troupe/actors/context.hpp>
#include <troupe/actors/node.hpp>

namespace troupe {

using named_tensors = std::vector<std::pair<std::string, at::Tensor>>;

/// A module of a node as its peers use it. Derive from it to offer methods; see module_types::add.
class module {
 public:
  virtual ~module() = default;
  /// Runs a method ("forward", ...). Throws for one it does not have.
  virtual call_reply call(const std::string& method, call_arguments& arguments) = 0;
  /// Its parameters by name, in a fixed order. They share storage with the module's.
  virtual named_tensors parameters() = 0;
};

/// Registers the type under a name on a node, so that peers can create modules of it there.
void add_module_type(node& here, const std::string& type, std::function<std::shared_ptr<module>(const attributes&)> make);

/// A module that lives on another node (or this one). The last handle gone, the module is dropped there.
class remote_module {
 public:
  remote_module(peer where, object_id id);

  const peer& where() const noexcept;
  object_id id() const noexcept;

  /// Calls a method; joins the context of the calling thread.
  future<call_reply> call(const std::string& method, std::vector<at::Tensor> tensors = {}, attributes values = {}) const;

  /// Copies of its parameters.
  named_tensors parameters() const;
  /// Overwrites parameters by name; every name and shape must fit, or nothing is written.
  void set_parameters(const named_tensors& values) const;
  /// The gradients that the context gathered for its parameters, by parameter name; undefined where there is none.
  named_tensors gradients(const context& pass) const;

 private:
  struct lifetime;
  std::shared_ptr<lifetime> lifetime_;
};

}  // namespace troupe
