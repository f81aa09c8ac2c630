// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include <c10/core/Device.h>
#include <torch/nn/module.h>

#include "apps/charlm/recipe.hpp"

namespace troupe::apps::charlm {

/// Stage `index` of `count`. The blocks are divided evenly, in order. The first stage also has the embedding, the last one the
/// final norm and the head.
struct stage_position {
  std::int64_t index = 0;
  std::int64_t count = 1;
};

/// A linear layer: a function of the input, the weight and the bias, as at::linear.
using linear_function = std::function<at::Tensor(const at::Tensor&, const at::Tensor&, const at::Tensor&)>;
at::Tensor whole_linear(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias);

/// Returns tensors that a stage uses in place of these: its input or, in the first stage, its tables.
using enter_function = std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>&)>;

/// One stage of the transformer. The first stage takes tokens [windows, context] of int64. Between stages go hidden values
/// [windows, context, width]. The last stage gives logits [windows, context, vocabulary].
///   SG-1  stages with the same seed have the same parameters, however many stages there are: `count` stages in a row are the
///         whole model.
///   SG-2  an input of another shape or dtype throws std::runtime_error with the expected shape.
///   SG-3  the parameters are on the device of the stage, with the values that they have on the CPU; an input comes from any
///         device.
class stage : public torch::nn::Module {
 public:
  stage(const model_shape& shape, stage_position position, std::uint64_t seed, c10::Device device = c10::kCPU);

  /// `enter`: null, or called once, before all other work.
  at::Tensor forward(const at::Tensor& input, const linear_function& linear = whole_linear, const enter_function& enter = {});

 private:
  void check_input(const at::Tensor& input) const;

  model_shape shape_;
  stage_position position_;
  c10::Device device_;
  at::Tensor token_table_;
  at::Tensor position_table_;
  std::vector<std::shared_ptr<torch::nn::Module>> blocks_;
  at::Tensor norm_weight_, norm_bias_, head_weight_, head_bias_;
};

/// All stages in this process.
class whole_model {
 public:
  whole_model(const model_shape& shape, std::int64_t stages, std::uint64_t seed, c10::Device device = c10::kCPU);

  at::Tensor forward(at::Tensor tokens);
  const std::vector<std::shared_ptr<stage>>& stages() const noexcept { return stages_; }
  std::vector<at::Tensor> parameters() const;

 private:
  std::vector<std::shared_ptr<stage>> stages_;
};

/// The mean cross entropy in nats over the targets that are not negative, times `scale`, on the device of the logits.
at::Tensor character_loss(const at::Tensor& logits, const at::Tensor& targets, double scale = 1);

}  // namespace troupe::apps::charlm
