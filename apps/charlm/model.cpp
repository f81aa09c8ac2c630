// SPDX-License-Identifier: BSD-3-Clause
#include "apps/charlm/model.hpp"

#include <cmath>
#include <stdexcept>

#include <c10/util/StringUtil.h>
#include <torch/torch.h>

namespace troupe::apps::charlm {

namespace {

/// Draws each parameter with a random generator of its own, seeded by name. So the values do not depend on the other parameters
/// in the process. The values are drawn on the CPU: so they are the same on each device.
class initial_values {
 public:
  initial_values(std::uint64_t seed, c10::Device device) : seed_(seed), device_(device) {}

  at::Tensor normal(const std::string& name, at::IntArrayRef shape, double deviation) const {
    auto hash = seed_ ^ 0xcbf29ce484222325u;
    for (const auto c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    auto generator = at::make_generator<at::CPUGeneratorImpl>(hash);
    return at::empty(shape).normal_(0, deviation, generator).to(device_);
  }
  at::Tensor ones(std::int64_t size) const { return at::ones(size, device_); }
  at::Tensor zeros(std::int64_t size) const { return at::zeros(size, device_); }

 private:
  std::uint64_t seed_;
  c10::Device device_;
};

/// The standard deviation of the initial weights: 0.02 at a width of 1024, and proportional to 1/sqrt(width), because a narrow
/// model learns far more slowly with 0.02. (The weights of a block that write to the residual have a smaller deviation.)
double deviation_for(std::int64_t width) { return 0.64 / std::sqrt(static_cast<double>(width)); }

/// x + attention(norm(x)), then x + mlp(norm(x)).
class block : public torch::nn::Module {
 public:
  block(const model_shape& shape, const std::string& name, const initial_values& draw) : heads_(shape.heads) {
    const auto w = shape.width;
    const auto spread = deviation_for(w);
    const auto into_residual = spread / std::sqrt(2.0 * static_cast<double>(shape.blocks));
    const auto weight = [&](const std::string& own_name, at::IntArrayRef size, double deviation) {
      return register_parameter(own_name, draw.normal(name + "." + own_name, size, deviation));
    };
    norm1_weight_ = register_parameter("norm1_weight", draw.ones(w));
    norm1_bias_ = register_parameter("norm1_bias", draw.zeros(w));
    attention_weight_ = weight("attention_weight", {3 * w, w}, spread);
    attention_bias_ = register_parameter("attention_bias", draw.zeros(3 * w));
    projection_weight_ = weight("projection_weight", {w, w}, into_residual);
    projection_bias_ = register_parameter("projection_bias", draw.zeros(w));
    norm2_weight_ = register_parameter("norm2_weight", draw.ones(w));
    norm2_bias_ = register_parameter("norm2_bias", draw.zeros(w));
    up_weight_ = weight("up_weight", {4 * w, w}, spread);
    up_bias_ = register_parameter("up_bias", draw.zeros(4 * w));
    down_weight_ = weight("down_weight", {w, 4 * w}, into_residual);
    down_bias_ = register_parameter("down_bias", draw.zeros(w));
  }

  at::Tensor forward(const at::Tensor& x, const linear_function& linear) {
    const auto windows = x.size(0), length = x.size(1), width = x.size(2);
    const auto normed = at::layer_norm(x, {width}, norm1_weight_, norm1_bias_);
    const auto query_key_value = linear(normed, attention_weight_, attention_bias_)
                                   .view({windows, length, 3, heads_, width / heads_})
                                   .permute({2, 0, 3, 1, 4})
                                   .unbind(0);
    const auto mixed =
      at::scaled_dot_product_attention(query_key_value[0], query_key_value[1], query_key_value[2], {}, 0.0, /*is_causal=*/true);
    const auto joined = mixed.transpose(1, 2).reshape({windows, length, width});
    const auto y = x + linear(joined, projection_weight_, projection_bias_);
    const auto wide = linear(at::layer_norm(y, {width}, norm2_weight_, norm2_bias_), up_weight_, up_bias_);
    return y + linear(at::gelu(wide, "tanh"), down_weight_, down_bias_);
  }

 private:
  std::int64_t heads_;
  at::Tensor norm1_weight_, norm1_bias_, attention_weight_, attention_bias_, projection_weight_, projection_bias_;
  at::Tensor norm2_weight_, norm2_bias_, up_weight_, up_bias_, down_weight_, down_bias_;
};

}  // namespace

at::Tensor whole_linear(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias) {
  return at::linear(input, weight, bias);
}

stage::stage(const model_shape& shape, stage_position position, std::uint64_t seed, c10::Device device)
    : shape_(shape), position_(position), device_(device) {
  shape.check();
  if (position.count < 1 || position.index < 0 || position.index >= position.count || position.count > shape.blocks)
    throw std::runtime_error("expected a stage of 1 to " + std::to_string(shape.blocks) +
                             " (one for each block), but it is number " + std::to_string(position.index) + " of " +
                             std::to_string(position.count));
  const initial_values draw{seed, device};
  const auto w = shape.width;
  const auto spread = deviation_for(w);
  if (position.index == 0) {
    token_table_ = register_parameter("token_table", draw.normal("token_table", {shape.vocabulary, w}, spread));
    position_table_ = register_parameter("position_table", draw.normal("position_table", {shape.context, w}, spread));
  }
  const auto begin = shape.blocks * position.index / position.count;
  const auto end = shape.blocks * (position.index + 1) / position.count;
  for (auto i = begin; i < end; ++i) {
    const auto name = "block" + std::to_string(i);
    blocks_.push_back(register_module(name, std::make_shared<block>(shape, name, draw)));
  }
  if (position.index + 1 == position.count) {
    norm_weight_ = register_parameter("norm_weight", draw.ones(w));
    norm_bias_ = register_parameter("norm_bias", draw.zeros(w));
    head_weight_ = register_parameter("head_weight", draw.normal("head_weight", {shape.vocabulary, w}, spread));
    head_bias_ = register_parameter("head_bias", draw.zeros(shape.vocabulary));
  }
}

void stage::check_input(const at::Tensor& input) const {
  const auto first = position_.index == 0;
  const auto fits = input.defined() && input.dim() == (first ? 2 : 3) &&
                    input.scalar_type() == (first ? at::kLong : at::kFloat) && input.size(1) >= 1 &&
                    input.size(1) <= shape_.context && (first || input.size(2) == shape_.width);
  if (fits) return;
  const auto wanted = c10::str(first ? "int64 tokens" : "float32 hidden values", " [windows, 1 to ", shape_.context,
                               first ? "" : c10::str(", ", shape_.width), "]");
  const auto got = input.defined() ? c10::str(input.scalar_type(), " ", input.sizes()) : "an undefined tensor";
  throw std::runtime_error(
    c10::str("stage ", position_.index + 1, " of ", position_.count, " expected ", wanted, ", but got ", got));
}

at::Tensor stage::forward(const at::Tensor& input, const linear_function& linear, const enter_function& enter) {
  check_input(input);
  std::vector<at::Tensor> first{input};
  if (position_.index == 0) first = {token_table_, position_table_};
  if (enter) first = enter(first);
  auto x = position_.index == 0 ? at::embedding(first[0], input.to(device_)) + first[1].narrow(0, 0, input.size(1))
                                : first[0].to(device_);
  for (const auto& each : blocks_) x = static_cast<block&>(*each).forward(x, linear);
  if (position_.index + 1 == position_.count)
    x = linear(at::layer_norm(x, {shape_.width}, norm_weight_, norm_bias_), head_weight_, head_bias_);
  return x;
}

whole_model::whole_model(const model_shape& shape, std::int64_t stages, std::uint64_t seed, c10::Device device) {
  for (std::int64_t i = 0; i < stages; ++i)
    stages_.push_back(std::make_shared<stage>(shape, stage_position{i, stages}, seed, device));
}

at::Tensor whole_model::forward(at::Tensor x) {
  for (const auto& each : stages_) x = each->forward(x);
  return x;
}

std::vector<at::Tensor> whole_model::parameters() const {
  std::vector<at::Tensor> all;
  for (const auto& each : stages_)
    for (const auto& parameter : each->parameters()) all.push_back(parameter);
  return all;
}

at::Tensor character_loss(const at::Tensor& logits, const at::Tensor& targets, double scale) {
  const auto loss = at::cross_entropy_loss(logits.reshape({-1, logits.size(-1)}), targets.reshape({-1}).to(logits.device()), {},
                                           at::Reduction::Mean, -1);
  return scale == 1 ? loss : loss * scale;
}

}  // namespace troupe::apps::charlm
