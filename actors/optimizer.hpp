// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <troupe/actors/context.hpp>
#include <troupe/actors/remote_module.hpp>

namespace troupe {

/// What an optimizer does on every node: `type` is "sgd", "adam" or "adamw" (libtorch's own), `values` its options by their
/// libtorch names ("lr", "weight_decay", "beta1", "beta2", "eps", "momentum", ...). Unknown names are refused.
struct optimizer_settings {
  std::string type = "adamw";
  attributes values;
};

/// Steps parameters where they live: one libtorch optimizer on every node that holds some of them.
class optimizer {
 public:
  /// Over the parameters of remote modules and, on this node, `local` ones.
  optimizer(node& here, optimizer_settings options, std::vector<remote_module> modules, named_tensors local = {});
  ~optimizer();

  /// Steps every parameter with the gradient the context gathered for it; parameters without one stay as they are.
  /// `clip_norm`: scales all gradients so that their norm over all nodes is at most this. Returns the norm before clipping
  /// when clipping, otherwise nothing. Blocks; throws troupe::error.
  std::optional<double> step(const context& pass, std::optional<double> clip_norm = {});

  /// Changes the learning rate on every node.
  void set_learning_rate(double rate);

  /// Writes, on each node, its parameters and optimizer state to `folder/<node name>.pt` (whole or not at all);
  /// `load` reads them back, and throws when names or shapes do not fit the model.
  void save(const std::string& folder, const attributes& about);
  attributes load(const std::string& folder);

 private:
  struct implementation;
  std::unique_ptr<implementation> implementation_;
};

}  // namespace troupe
