// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <troupe/messages/attributes.hpp>

namespace torch::optim {
class Optimizer;
}

namespace troupe::objects {

/// What an optimizer keeps for one parameter: a step counter, and a tensor for each slot (undefined if the optimizer keeps
/// none).
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
  /// The names of the tensors that the optimizer keeps for a parameter.
  virtual const std::vector<std::string>& slots() const noexcept = 0;

  /// Parameters with the options that differ from those of the optimizer.
  struct group {
    std::vector<at::Tensor> parameters;
    attributes options = {};
  };
  /// Makes an optimizer. Throws troupe::error (misuse) for an option that the optimizer does not have, whose type is wrong, or
  /// that libtorch does not read from a group.
  virtual std::unique_ptr<torch::optim::Optimizer> make(std::vector<group> groups, const attributes& options) const = 0;
  std::unique_ptr<torch::optim::Optimizer> make(std::vector<at::Tensor> parameters, const attributes& options) const;

  /// The current values of all options of a group.
  virtual attributes options(const torch::optim::Optimizer& of, std::size_t group = 0) const = 0;
  virtual void set_options(torch::optim::Optimizer& of, const attributes& options, std::size_t group = 0) const = 0;

  virtual parameter_state state(const torch::optim::Optimizer& of, const at::Tensor& parameter) const = 0;
  virtual void set_state(torch::optim::Optimizer& of, const at::Tensor& parameter, parameter_state state) const = 0;

  /// The kind with this name; throws troupe::error (misuse) with the names of all kinds if there is none.
  static const optimizer_kind& find(const std::string& name);
};

}  // namespace troupe::objects
