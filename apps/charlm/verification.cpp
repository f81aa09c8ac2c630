// SPDX-License-Identifier: BSD-3-Clause
#include "apps/charlm/verification.hpp"

#include <stdexcept>

#include "apps/charlm/gradient_check.hpp"

namespace troupe::apps::charlm {

void verification::check(whole_model& model, const batch& windows, const batch_cuts& cuts, std::int64_t step,
                         const std::vector<std::string>& names, const std::vector<named_tensors>& came) {
  const auto expected = single_process_gradients(model, windows, cuts);
  parameters_ = 0;
  for (std::size_t s = 0; s < came.size(); ++s) {
    if (const auto text = first_difference(came[s], expected[s]))
      throw std::runtime_error("step " + std::to_string(step) + ", " + names[s] + ": " + *text);
    parameters_ += static_cast<std::int64_t>(expected[s].size());
  }
  ++steps_;
}

std::string verification::text() const {
  return "verified: in " + std::to_string(steps_) + (steps_ == 1 ? " step" : " steps") + " the gradients of all " +
         std::to_string(parameters_) + " parameters have the bits that libtorch's own engine computes in one process";
}

}  // namespace troupe::apps::charlm
