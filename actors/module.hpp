// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include <troupe/actors/function_table.hpp>
#include <troupe/messages/errors.hpp>

namespace troupe {

using named_tensors = std::vector<std::pair<std::string, at::Tensor>>;

/// A module that peers can use through a remote_module. Derive a class from `module` and register it with add_module_type.
class module {
 public:
  virtual ~module() = default;
  /// Runs a method ("forward", ...). Throws if the module has no such method. Several calls may run at once.
  virtual call_reply call(const std::string& method, call_arguments& arguments) = 0;
  /// The parameters by name, in a fixed order: the module's own leaves, neither copied nor detached.
  virtual named_tensors parameters() = 0;
  /// The buffers by name, in a fixed order: tensors that calls change and that have no gradient, such as running means and
  /// counters. A checkpoint holds the buffers beside the parameters. troupe calls buffers() whenever it needs the buffers,
  /// because a call may replace a buffer.
  virtual named_tensors buffers() { return {}; }
  /// Turns training mode on or off, for layers such as dropout and batch norm. A class without a train() of its own has no
  /// training mode: then train() throws troupe::error (misuse).
  virtual void train(bool /*on*/) {
    throw error(errc::misuse, "the module has no training mode; give its class a function train(bool)");
  }
};

}  // namespace troupe
