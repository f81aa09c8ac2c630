// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/apps/charlm/gradient_check_test.cpp, tests/apps/charlm/verification_test.cpp
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <troupe/actors/module.hpp>

#include "apps/charlm/corpus.hpp"
#include "apps/charlm/model.hpp"

namespace troupe::apps::charlm {

/// Compares gradients with those of a single process.
///   GC-1  two values are equal if their bits are equal. So a NaN equals itself, and 0 differs from -0.
///   GC-2  a difference is reported with the parameter, the position and both values. A parameter that is on one side only is
///         reported too.

/// Returns the first difference between `came` and `expected`, in one line; empty if there is none.
std::optional<std::string> first_difference(const named_tensors& came, const named_tensors& expected);

/// Copies parameters, one named list per stage, into the model. Throws std::runtime_error for a name or shape that the model
/// does not have.
void copy_parameters(const std::vector<named_tensors>& from, whole_model& to);

/// Computes the gradients of a step with libtorch's own engine, in this process on one thread. Returns one named list per
/// stage. `windows` are cut into micro-batches of these sizes, with a backward pass for each.
std::vector<named_tensors> single_process_gradients(whole_model& model, const batch& windows,
                                                    const std::vector<std::int64_t>& sizes);

/// Compares the gradients of a cluster's steps with the gradients that libtorch's own engine computes in this process, and
/// counts the comparisons.
class verification {
 public:
  /// `model`: a model with the parameters at the beginning of the step. `names`: the nodes, one per stage. `came`: the
  /// gradients, one named list per stage. Throws std::runtime_error with step, node and parameter at the first difference.
  void check(whole_model& model, const batch& windows, const std::vector<std::int64_t>& sizes, std::int64_t step,
             const std::vector<std::string>& names, const std::vector<named_tensors>& came);

  std::int64_t steps() const noexcept { return steps_; }
  /// The number of parameters compared in each step.
  std::int64_t parameters() const noexcept { return parameters_; }
  std::string text() const;

 private:
  std::int64_t steps_ = 0;
  std::int64_t parameters_ = 0;
};

}  // namespace troupe::apps::charlm
