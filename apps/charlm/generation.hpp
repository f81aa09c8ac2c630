// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>

#include "apps/charlm/recipe.hpp"
#include "apps/charlm/text.hpp"

namespace troupe::apps::charlm {

class whole_model;

struct generation_settings {
  std::int64_t length = 300;  // characters after the prompt
  std::u32string prompt = U"\n";
  double temperature = 0.8;  // 0: always show the most likely character
  std::uint64_t seed = 1;
};

/// Generates characters that follow the prompt, and returns them without the prompt. The same model, settings and libtorch give
/// the same text. `show` gets each character at once; if it returns false, the text ends. Throws std::runtime_error if the
/// model does not know a character of the prompt.
std::u32string generate(whole_model& model, const model_shape& shape, const vocabulary& words, const generation_settings& how,
                        const std::function<bool(char32_t)>& show = {});

}  // namespace troupe::apps::charlm
