// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <troupe/actors/module.hpp>

namespace troupe::objects {

/// The parameter of the module with this name; throws troupe::error (misuse) with the names of all parameters if there is none.
at::Tensor find_parameter(module& of, const std::string& name);

/// Some parameters of a module, as a module. Its calls, buffers and mode are those of the whole module.
class module_selection : public module {
 public:
  /// Throws troupe::error (misuse) if the module has no parameter of such a name.
  module_selection(std::shared_ptr<module> whole, const std::vector<std::string>& names);

  call_reply call(const std::string& method, call_arguments& arguments) override { return whole_->call(method, arguments); }
  named_tensors parameters() override { return parameters_; }
  named_tensors buffers() override { return whole_->buffers(); }
  void train(bool on) override { whole_->train(on); }

 private:
  std::shared_ptr<module> whole_;
  named_tensors parameters_;
};

}  // namespace troupe::objects
