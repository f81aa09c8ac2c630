// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <troupe/actors/context.hpp>
#include <troupe/actors/node.hpp>
#include <troupe/actors/optimizer.hpp>
#include <troupe/actors/remote_module.hpp>

#include "apps/charlm/corpus.hpp"
#include "apps/charlm/model.hpp"
#include "apps/charlm/recipe.hpp"

namespace troupe::apps::charlm {

/// What a step gave.
struct step_result {
  double loss = 0;           // mean over the batch, nats a character
  double gradient_norm = 0;  // over all nodes, before clipping
};

/// A model whose stages live on nodes, trained from this one.
///   PL-1  the micro-batches of a step move through the stages one behind the other, so that all stages work at once.
///   PL-2  every stage gets the micro-batches in their order, so that its gradients have the bits of a single process.
class pipeline {
 public:
  /// Makes one stage on each of the peers, in order. Blocks; throws troupe::error.
  pipeline(node& here, const std::vector<peer>& where, const model_shape& shape, const recipe& how);

  /// One step of training. `look` is called between the backward pass and the optimizer's step.
  step_result train_step(const batch& windows, double learning_rate, const std::function<void(const context&)>& look = {});

  /// Mean loss over the targets that count.
  double evaluate(const batch& windows);

  /// Copies of the parameters, or of the gradients in the context, one named list a stage.
  std::vector<named_tensors> parameters() const;
  std::vector<named_tensors> gradients(const context& pass) const;

  optimizer& optimiser() noexcept { return optimizer_; }
  /// Windows in each micro-batch.
  const std::vector<std::int64_t>& cuts() const noexcept { return cuts_; }

 private:
  void run(const std::string& method, const std::vector<at::Tensor>& inputs,
           const std::function<void(std::size_t, const at::Tensor&)>& output) const;

  node* here_;
  recipe how_;
  std::vector<std::int64_t> cuts_;
  std::vector<remote_module> stages_;
  optimizer optimizer_;
};

}  // namespace troupe::apps::charlm
