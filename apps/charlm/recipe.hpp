// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/apps/charlm/recipe_test.cpp, tests/apps/charlm/model_shape_test.cpp
#pragma once

#include <cstdint>
#include <string>

#include <troupe/messages/attributes.hpp>
#include <troupe/messages/wire_format.hpp>

#include "apps/charlm/schedule.hpp"

namespace troupe::apps::charlm {

struct model_shape {
  std::int64_t vocabulary = 0;
  std::int64_t blocks = 4;
  std::int64_t width = 128;
  std::int64_t heads = 4;
  std::int64_t context = 64;

  bool operator==(const model_shape&) const = default;

  /// Throws std::runtime_error that says which number is not possible, and which numbers are.
  void check() const;
  attributes to_attributes() const;
  static model_shape from_attributes(const attributes& values);
  /// "4 blocks of width 128 with 4 heads, context 64, 86 characters"
  std::string describe() const;
};

/// How a model is trained: the same for the cluster and for the single process that is compared with it.
struct recipe {
  std::uint64_t seed = 1;
  std::int64_t batch = 96;          // windows in a step
  std::int64_t micro_batches = 12;  // parts of a batch that move through the stages one after the other
  double learning_rate = 4.5e-3;    // highest rate, after the warm-up; then lowered along a cosine
  std::int64_t warmup_steps = 20;
  double final_rate = 0.02;  // final rate, as a part of the highest
  double weight_decay = 0.1;
  double beta1 = 0.9;
  double beta2 = 0.99;
  double clip_norm = 1.0;
  schedule order = schedule::dataflow;
  wire_format wire = wire_format::exact;  // of activations and gradients between the stages; verified steps are exact

  /// The learning rate of a step; `fraction` (0 to 1) of the run is done.
  double rate_at(std::int64_t step, double fraction) const;

  attributes optimizer_options() const;

  /// Throws std::runtime_error that names an option with an impossible value.
  void check() const;
};

}  // namespace troupe::apps::charlm
