// SPDX-License-Identifier: BSD-3-Clause
#include "apps/charlm/model_shape.hpp"

#include <stdexcept>

#include <troupe/messages/plain_text.hpp>

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
  plain_stream out;
  out << blocks << " blocks of width " << width << " with " << heads << " heads, context " << context << ", " << vocabulary
      << " characters";
  return out.str();
}

}  // namespace troupe::apps::charlm
