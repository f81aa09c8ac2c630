// SPDX-License-Identifier: BSD-3-Clause
#include "apps/charlm/generation.hpp"

#include <algorithm>
#include <random>
#include <stdexcept>

#include <torch/torch.h>

#include <troupe/messages/plain_text.hpp>

#include "apps/charlm/model.hpp"

namespace troupe::apps::charlm {

namespace {

/// Returns the first index at which the sum of the probabilities exceeds `point`, a number in [0, 1).
std::int64_t pick(const at::Tensor& probabilities, double point) {
  const auto* p = probabilities.const_data_ptr<double>();
  double sum = 0;
  for (std::int64_t i = 0; i < probabilities.numel(); ++i)
    if ((sum += p[i]) > point) return i;
  return probabilities.argmax().item<std::int64_t>();
}

}  // namespace

std::u32string generate(whole_model& model, const model_shape& shape, const vocabulary& words, const generation_settings& how,
                        const std::function<bool(char32_t)>& show) {
  if (how.temperature < 0)
    throw std::runtime_error("--temperature is expected to be 0 or more, but is " + number_text(how.temperature));
  const torch::NoGradGuard no_graph;
  auto tokens = words.encode(how.prompt);
  if (tokens.empty()) tokens.push_back(0);
  const auto begin = tokens.size();
  std::mt19937_64 random{how.seed};
  for (std::int64_t i = 0; i < how.length; ++i) {
    const auto seen = std::min<std::int64_t>(static_cast<std::int64_t>(tokens.size()), shape.context);
    const auto window =
      at::tensor(at::ArrayRef<std::int64_t>(tokens).slice(tokens.size() - static_cast<std::size_t>(seen)), at::kLong)
        .unsqueeze(0);
    const at::Tensor logits = model.forward(window)[0][seen - 1].cpu().to(at::kDouble);
    if (how.temperature == 0) {
      tokens.push_back(logits.argmax().item<std::int64_t>());
    } else {
      const auto point = static_cast<double>(random() >> 11) * 0x1p-53;
      tokens.push_back(pick(at::softmax(logits / how.temperature, 0).contiguous(), point));
    }
    if (show && !show(words.characters()[static_cast<std::size_t>(tokens.back())])) break;
  }
  return words.decode({tokens.begin() + static_cast<std::ptrdiff_t>(begin), tokens.end()});
}

}  // namespace troupe::apps::charlm
