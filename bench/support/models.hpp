// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

namespace troupe::bench {

/// The result of one forward pass, whose graph is kept. The values are drawn on the CPU, so they are the same on each device.
struct model_graph {
  at::Tensor loss;
  std::vector<at::Tensor> parameters;
};

/// Three linear layers of width 128, on one example.
model_graph make_mlp_batch_1(c10::Device device = c10::kCPU);
/// 64 steps of an LSTM cell with 64 hidden units, four sequences at once.
model_graph make_lstm_64(c10::Device device = c10::kCPU);
/// A transformer block on 64 positions of width 64, four heads.
model_graph make_transformer_64(c10::Device device = c10::kCPU);
/// Two convolutions with pooling and a linear layer, on four images of 28 x 28.
model_graph make_conv_small(c10::Device device = c10::kCPU);

}  // namespace troupe::bench
