// SPDX-License-Identifier: BSD-3-Clause
#include "models.hpp"

#include <cmath>
#include <cstdint>
#include <tuple>

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

namespace troupe::bench {

namespace {

/// Makes parameters from a fixed seed, in the order in which they are asked for.
class parameter_store {
 public:
  explicit parameter_store(c10::Device device) : device_(device) {}

  at::Tensor operator()(at::IntArrayRef shape, double scale) {
    all.push_back((at::randn(shape, random_) * scale).to(device_).requires_grad_());
    return all.back();
  }

  at::Tensor input(at::IntArrayRef shape) const { return at::randn(shape, random_).to(device_); }

  at::Tensor targets(std::int64_t classes, std::int64_t count) const {
    return at::randint(classes, {count}, random_, at::kLong).to(device_);
  }

  at::Tensor linear(const at::Tensor& input, std::int64_t outputs) {
    const std::int64_t inputs = input.size(-1);
    const at::Tensor weight = (*this)({outputs, inputs}, 1 / std::sqrt(static_cast<double>(inputs)));
    return at::linear(input, weight, (*this)({outputs}, 0.1));
  }

  at::Tensor layer_norm(const at::Tensor& input) {
    const std::int64_t width = input.size(-1);
    return at::layer_norm(input, {width}, (*this)({width}, 1), (*this)({width}, 0.1));
  }

  std::vector<at::Tensor> all;

 private:
  c10::Device device_;
  at::Generator random_ = at::make_generator<at::CPUGeneratorImpl>(20);
};

}  // namespace

model_graph make_mlp_batch_1(c10::Device device) {
  parameter_store parameters(device);
  at::Tensor hidden = parameters.input({1, 128});
  hidden = at::relu(parameters.linear(hidden, 128));
  hidden = at::relu(parameters.linear(hidden, 128));
  const at::Tensor scores = parameters.linear(hidden, 10);
  return {at::cross_entropy_loss(scores, parameters.targets(10, 1)), parameters.all};
}

model_graph make_lstm_64(c10::Device device) {
  constexpr std::int64_t steps = 64;
  constexpr std::int64_t width = 64;
  constexpr std::int64_t batch = 4;
  parameter_store parameters(device);
  const at::Tensor inputs = parameters.input({steps, batch, width});
  const at::Tensor input_weight = parameters({4 * width, width}, 0.1);
  const at::Tensor hidden_weight = parameters({4 * width, width}, 0.1);
  const at::Tensor input_bias = parameters({4 * width}, 0.1);
  const at::Tensor hidden_bias = parameters({4 * width}, 0.1);
  at::Tensor hidden = at::zeros({batch, width}, device);
  at::Tensor cell = at::zeros({batch, width}, device);
  for (std::int64_t step = 0; step < steps; ++step)
    std::tie(hidden, cell) = at::lstm_cell(inputs[step], {hidden, cell}, input_weight, hidden_weight, input_bias, hidden_bias);
  return {hidden.square().mean(), parameters.all};
}

model_graph make_transformer_64(c10::Device device) {
  constexpr std::int64_t positions = 64;
  constexpr std::int64_t width = 64;
  constexpr std::int64_t heads = 4;
  parameter_store parameters(device);
  const at::Tensor input = parameters.input({1, positions, width});
  const at::Tensor normal = parameters.layer_norm(input);
  const auto split = [&](const at::Tensor& of) { return of.view({1, positions, heads, width / heads}).transpose(1, 2); };
  const auto parts = parameters.linear(normal, 3 * width).chunk(3, -1);
  const at::Tensor mixed = at::scaled_dot_product_attention(split(parts[0]), split(parts[1]), split(parts[2]), {}, 0, true);
  const at::Tensor attended = input + parameters.linear(mixed.transpose(1, 2).reshape({1, positions, width}), width);
  const at::Tensor wide = at::gelu(parameters.linear(parameters.layer_norm(attended), 4 * width));
  return {(attended + parameters.linear(wide, width)).square().mean(), parameters.all};
}

model_graph make_conv_small(c10::Device device) {
  parameter_store parameters(device);
  at::Tensor hidden = parameters.input({4, 1, 28, 28});
  hidden = at::max_pool2d(at::relu(at::conv2d(hidden, parameters({8, 1, 3, 3}, 0.3), parameters({8}, 0.1))), 2);
  hidden = at::max_pool2d(at::relu(at::conv2d(hidden, parameters({16, 8, 3, 3}, 0.1), parameters({16}, 0.1))), 2);
  const at::Tensor scores = parameters.linear(hidden.flatten(1), 10);
  return {at::cross_entropy_loss(scores, parameters.targets(10, 4)), parameters.all};
}

}  // namespace troupe::bench
