// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "apps/charlm/model_shape.hpp"
#include "apps/charlm/vocabulary.hpp"

namespace troupe::apps::charlm {

class whole_model;

/// How text is drawn from a model.
struct generation_settings {
  std::int64_t length = 300;  // characters after the prompt
  std::u32string prompt = U"\n";
  double temperature = 0.8;  // 0: always the likeliest character
  std::uint64_t seed = 1;
};

/// That many characters that the model continues the prompt with (the prompt itself is not in them). The same model, settings
/// and libtorch give the same text. `take` gets each character as it comes and may end the text by returning false. Throws
/// std::runtime_error for a prompt with characters that the model does not know.
std::u32string generate(whole_model& model, const model_shape& shape, const vocabulary& words, const generation_settings& how,
                        const std::function<bool(char32_t)>& take = {});

}  // namespace troupe::apps::charlm
