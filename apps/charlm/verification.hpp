// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <troupe/actors/module.hpp>

#include "apps/charlm/corpus.hpp"
#include "apps/charlm/micro_batches.hpp"
#include "apps/charlm/model.hpp"

namespace troupe::apps::charlm {

/// Compares the gradients of a cluster's steps with the gradients that libtorch's own engine computes in this process, and
/// counts the comparisons.
class verification {
 public:
  /// `model`: a model with the parameters at the beginning of the step. `names`: the nodes, one per stage. `came`: the
  /// gradients, one named list per stage. Throws std::runtime_error with step, node and parameter at the first difference.
  void check(whole_model& model, const batch& windows, const batch_cuts& cuts, std::int64_t step,
             const std::vector<std::string>& names, const std::vector<named_tensors>& came);

  std::int64_t steps() const noexcept { return steps_; }
  /// The number of parameters compared in each step.
  std::int64_t parameters() const noexcept { return parameters_; }
  /// The result as text for a person.
  std::string text() const;

 private:
  std::int64_t steps_ = 0;
  std::int64_t parameters_ = 0;
};

}  // namespace troupe::apps::charlm
