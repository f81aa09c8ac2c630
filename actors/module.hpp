// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include <troupe/actors/function_table.hpp>

namespace troupe {

using named_tensors = std::vector<std::pair<std::string, at::Tensor>>;

/// A module of a node as its peers use it. Derive from it to offer methods; see add_module_type.
class module {
 public:
  virtual ~module() = default;
  /// Runs a method ("forward", ...). Throws for one it does not have. Several calls may run at once.
  virtual call_reply call(const std::string& method, call_arguments& arguments) = 0;
  /// Its parameters by name, in a fixed order: the module's own leaves, neither copied nor detached.
  virtual named_tensors parameters() = 0;
  /// Its buffers by name, in a fixed order: tensors that calls change and no gradient steps, such as running means and counters. A
  /// checkpoint holds them beside the parameters. Asked for again whenever they are needed, as a call may replace one.
  virtual named_tensors buffers() { return {}; }
};

}  // namespace troupe
