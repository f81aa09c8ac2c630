// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/apps/split_learning_test.cpp, tests/hosts/split_learning_test.cpp
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>

#include <troupe/actors/function_table.hpp>
#include <troupe/messages/mutex.hpp>

#include "apps/split/cut.hpp"
#include "apps/split/halves.hpp"
#include "apps/split/table.hpp"

namespace troupe::apps::split {

/// The party with the labels. It stores the labels and its half of the model, and it has one function, which the feature side
/// calls. Weights and labels do not leave the process. The loss and the gradients of the activations are sent to the feature
/// side.
///   LF-1  a step is learned once, however often it is asked for. After that, no loss is computed for the step. So another try
///         of the same step changes nothing, even if it arrives late.
class label_side {
 public:
  /// `seed` determines the initial weights, and `noise_seed` determines the noise. Somebody who knows `noise_seed` can remove
  /// the noise. Without a seed, nobody can compute the weights or the noise.
  label_side(const table& labels, double rate, cut_options how, std::optional<std::uint64_t> seed,
             std::optional<std::uint64_t> noise_seed);

  /// The function `forward` of this node. A step needs two calls. The value "do" says which of the two a call is, and the value
  /// "step" is the number of the step, from 1.
  ///   "loss"   gets the tensors activations [rows, width_of_cut] and people [rows]. Returns the mean loss, or only the value
  ///            "learned" if the step was learned already.
  ///   "learn"  changes the weights. Called after the backward pass, in the context of the pass.
  call_reply forward(call_arguments& arguments);

  static constexpr const char* name = "forward";

 private:
  call_reply loss(std::int64_t step, const call_arguments& arguments) TROUPE_REQUIRES(mutex_);
  call_reply learn(std::int64_t step, const call_arguments& arguments) TROUPE_REQUIRES(mutex_);
  at::Tensor labels_of(const at::Tensor& people) const;

  const double rate_;
  std::unordered_map<std::int64_t, float> labels_;  // the label of each person
  checked_mutex mutex_;
  half half_ TROUPE_GUARDED_BY(mutex_);
  cut cut_ TROUPE_GUARDED_BY(mutex_);
  std::int64_t learned_ TROUPE_GUARDED_BY(mutex_) = 0;
};

}  // namespace troupe::apps::split
