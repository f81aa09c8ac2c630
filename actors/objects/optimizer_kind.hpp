// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace torch::optim {
class Optimizer;
}

namespace troupe::objects {

/// What an optimizer remembers of one parameter: its step counter and one tensor a slot (undefined where it keeps none).
struct parameter_state {
  bool present = false;
  std::int64_t step = 0;
  std::vector<at::Tensor> slots;
};

/// One of libtorch's optimizers, with its options as plain values and its state as plain tensors.
class optimizer_kind {
 public:
  virtual ~optimizer_kind() = default;

  virtual const std::string& name() const noexcept = 0;
  /// Names of the tensors it keeps for a parameter.
  virtual const std::vector<std::string>& slots() const noexcept = 0;

  /// Throws troupe::error (misuse) for an option that it does not have, or of another type.
  virtual std::unique_ptr<torch::optim::Optimizer> make(std::vector<at::Tensor> parameters,
                                                        const attributes& options) const = 0;

  /// All options as they are now.
  virtual attributes options(const torch::optim::Optimizer& of) const = 0;
  virtual void set_options(torch::optim::Optimizer& of, const attributes& options) const = 0;

  virtual parameter_state state(const torch::optim::Optimizer& of, const at::Tensor& parameter) const = 0;
  virtual void set_state(torch::optim::Optimizer& of, const at::Tensor& parameter, parameter_state state) const = 0;

  /// The kind of that name; throws troupe::error (misuse) with the names there are.
  static const optimizer_kind& find(const std::string& name);
};

}  // namespace troupe::objects
