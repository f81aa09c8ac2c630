// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/apps/split_learning_test.cpp, tests/hosts/split_learning_test.cpp
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <unordered_map>

#include <troupe/actors/function_table.hpp>

#include "apps/split/cut.hpp"
#include "apps/split/halves.hpp"
#include "apps/split/table.hpp"

namespace troupe::apps::split {

/// The party with the labels: its half of the model, its labels, and the one function that the other party calls. Neither the
/// weights nor the labels leave the process; the loss and the gradient of the activations do.
///   LF-1  a step is learned once, however often it is asked for, and no loss is computed for it afterwards. So a step that is
///         tried again changes nothing, even if an earlier try arrives late.
class label_side {
 public:
  /// `seed`: of the first weights. `noise_seed`: of the noise. Whoever knows `seed` knows the first weights. Whoever knows
  /// `noise_seed` can take the noise away. Without the seeds nobody can do either.
  label_side(const table& labels, double rate, cut_options how, std::optional<std::uint64_t> seed,
             std::optional<std::uint64_t> noise_seed);

  /// The function `forward`. The value "do" of the call says which part of a step the call is; the value "step" numbers the
  /// steps from 1.
  ///   "loss"   tensors: activations [rows, width_of_cut] and people [rows]. Replies with the mean loss; if the step was
  ///            learned already, with the value "learned".
  ///   "learn"  after the backward pass, in its context: changes the weights.
  call_reply forward(call_arguments& arguments);

  static constexpr const char* name = "forward";

 private:
  call_reply loss(std::int64_t step, const call_arguments& arguments);
  call_reply learn(std::int64_t step, const call_arguments& arguments);
  at::Tensor labels_of(const at::Tensor& people) const;

  const double rate_;
  std::unordered_map<std::int64_t, float> labels_;  // by person
  std::mutex mutex_;                                // guards half_, cut_ and learned_
  half half_;
  cut cut_;
  std::int64_t learned_ = 0;
};

}  // namespace troupe::apps::split
