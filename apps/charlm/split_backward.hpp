// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/apps/charlm/split_backward_test.cpp
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include <troupe/engine/torch_compat.hpp>

#include "apps/charlm/stage_turns.hpp"

namespace troupe::apps::charlm {

/// The functions by which the backward of one micro-batch takes its turns in a stage. The forward calls enter() first, then
/// linear() for each layer whose weights shall have turns of their own, and leave() last.
///   LZ-1  the gradients of the weights of linear() are computed in turns for weights, after the backward for inputs has ended,
///         and after all functions of the pass that are ready by then. So they are computed after the gradient of the stage's
///         input has left. Workers of the pass do not change this.
///   LZ-2  all gradients have the bits of at::linear.
///   LZ-3  the turn of the backward for inputs begins before the first function of the stage, and ends when all gradients of
///         the tensors of enter() are known.
class split_backward {
 public:
  explicit split_backward(std::shared_ptr<stage_turns::micro_batch> turns) : turns_(std::move(turns)) {}

  /// Returns tensors that the forward uses in place of these. `tensors`: the input of the stage or, if no gradient goes to the
  /// input, the parameters that the forward uses first.
  std::vector<at::Tensor> enter(const std::vector<at::Tensor>& tensors);

  /// at::linear with a weight and a bias. The gradients of both come from a function of their own.
  at::Tensor linear(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias);

  /// Returns a tensor that replaces `output`, the result of the stage's forward.
  at::Tensor leave(const at::Tensor& output);

 private:
  std::shared_ptr<stage_turns::micro_batch> turns_;
  engine::node_pointer ends_;  // set by enter()
};

}  // namespace troupe::apps::charlm
