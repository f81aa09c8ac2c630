// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <troupe/actors/module.hpp>

namespace troupe::objects {

/// The module's parameter of that name; throws troupe::error (misuse) with the names there are.
at::Tensor find_parameter(module& of, const std::string& name);

/// A module with some of its parameters alone; calls go to the whole, and the buffers are those of the whole.
class module_selection : public module {
 public:
  /// Throws troupe::error (misuse) for a name that the module does not have.
  module_selection(std::shared_ptr<module> whole, const std::vector<std::string>& names);

  call_reply call(const std::string& method, call_arguments& arguments) override { return whole_->call(method, arguments); }
  named_tensors parameters() override { return parameters_; }
  named_tensors buffers() override { return whole_->buffers(); }

 private:
  std::shared_ptr<module> whole_;
  named_tensors parameters_;
};

}  // namespace troupe::objects
