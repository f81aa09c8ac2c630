// SPDX-License-Identifier: BSD-3-Clause
#include "apps/charlm/recipe.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <stdexcept>

#include <troupe/messages/plain_text.hpp>

namespace troupe::apps::charlm {

double recipe::rate_at(std::int64_t step, double fraction) const {
  const auto warm = std::min(1.0, static_cast<double>(step + 1) / static_cast<double>(std::max<std::int64_t>(1, warmup_steps)));
  const auto fall = 0.5 * (1 + std::cos(std::numbers::pi * std::clamp(fraction, 0.0, 1.0)));
  return learning_rate * warm * (final_rate + (1 - final_rate) * fall);
}

attributes recipe::optimizer_options() const {
  return {{"lr", learning_rate}, {"weight_decay", weight_decay}, {"beta1", beta1}, {"beta2", beta2}};
}

void recipe::check() const {
  const auto expect = [](bool good, const char* option, const char* wanted, double value) {
    if (good) return;
    plain_stream text;
    text << option << " is expected to be " << wanted << ", but is " << value;
    throw std::runtime_error(text.str());
  };
  expect(batch >= 1, "--batch", "at least 1", static_cast<double>(batch));
  expect(micro_batches >= 1 && micro_batches <= batch, "--micro-batches", "at least 1 and at most --batch",
         static_cast<double>(micro_batches));
  expect(contexts >= 1, "--contexts", "at least 1", static_cast<double>(contexts));
  expect(learning_rate > 0 && std::isfinite(learning_rate), "--learning-rate", "above 0 and finite", learning_rate);
  expect(clip_norm > 0, "--clip-norm", "above 0", clip_norm);
}

}  // namespace troupe::apps::charlm
