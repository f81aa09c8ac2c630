// SPDX-License-Identifier: BSD-3-Clause
#include "apps/charlm/recipe.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <stdexcept>

#include <c10/util/StringUtil.h>

namespace troupe::apps::charlm {

void model_shape::check() const {
  const auto refuse = [](const std::string& what) { throw std::runtime_error(what); };
  const auto positive = [&](const char* option, std::int64_t value) {
    if (value < 1) refuse(std::string(option) + " is expected to be at least 1, but is " + std::to_string(value));
  };
  positive("--blocks", blocks);
  positive("--width", width);
  positive("--heads", heads);
  positive("--context", context);
  positive("the number of different characters", vocabulary);
  if (width % heads != 0)
    refuse("--width " + std::to_string(width) + " is expected to be a multiple of --heads " + std::to_string(heads) +
           "; --width " + std::to_string((width / heads + 1) * heads) + " would do");
}

attributes model_shape::to_attributes() const {
  return {{"vocabulary", vocabulary}, {"blocks", blocks}, {"width", width}, {"heads", heads}, {"context", context}};
}

model_shape model_shape::from_attributes(const attributes& values) {
  const auto number = [&](const char* name) { return get<std::int64_t>(values, name); };
  return {number("vocabulary"), number("blocks"), number("width"), number("heads"), number("context")};
}

std::string model_shape::describe() const {
  return c10::str(blocks, " blocks of width ", width, " with ", heads, " heads, context ", context, ", ", vocabulary,
                  " characters");
}

double recipe::rate_at(std::int64_t step, double fraction) const {
  const auto warm = std::min(1.0, static_cast<double>(step + 1) / static_cast<double>(std::max<std::int64_t>(1, warmup_steps)));
  const auto fall = 0.5 * (1 + std::cos(std::numbers::pi * std::clamp(fraction, 0.0, 1.0)));
  return learning_rate * warm * (final_rate + (1 - final_rate) * fall);
}

attributes recipe::optimizer_options() const {
  return {{"lr", learning_rate}, {"weight_decay", weight_decay}, {"beta1", beta1}, {"beta2", beta2}};
}

void recipe::check() const {
  const auto expect = [](bool good, const char* option, const std::string& wanted, double value) {
    if (!good) throw std::runtime_error(c10::str(option, " is expected to be ", wanted, ", but is ", value));
  };
  expect(batch >= 1, "--batch", "at least 1", static_cast<double>(batch));
  expect(micro_batches >= 1 && micro_batches <= batch, "--micro-batches",
         "from 1 to " + std::to_string(batch) + ", the windows of --batch", static_cast<double>(micro_batches));
  expect(learning_rate > 0 && std::isfinite(learning_rate), "--learning-rate", "above 0 and finite", learning_rate);
  expect(clip_norm > 0, "--clip-norm", "above 0", clip_norm);
}

}  // namespace troupe::apps::charlm
