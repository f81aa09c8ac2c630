// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/apps/charlm/split_backward_test.cpp
#pragma once

#include <memory>

#include <ATen/core/Tensor.h>

#include "apps/charlm/stage_turns.hpp"

namespace troupe::apps::charlm {

/// Returns `output`, the result of a stage's forward, with a graph whose backward asks `turns` for its turn.
at::Tensor with_turns(const at::Tensor& output, const std::shared_ptr<stage_turns::micro_batch>& turns);

/// at::linear with a weight and a bias. The gradients of both come from a function of their own.
///   LZ-1  this function runs after all functions of the pass that are ready, so after the gradient of the stage's input has
///         left, and in a turn for weights.
///   LZ-2  all gradients have the bits of at::linear.
at::Tensor split_linear(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
                        const std::shared_ptr<stage_turns::micro_batch>& turns);

}  // namespace troupe::apps::charlm
