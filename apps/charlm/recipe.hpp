// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include <troupe/messages/attributes.hpp>

namespace troupe::apps::charlm {

/// How a model is trained; the same for the cluster and for the single process beside it.
struct recipe {
  std::uint64_t seed = 1;
  std::int64_t batch = 96;          // windows a step
  std::int64_t micro_batches = 12;  // parts of a batch that move through the stages one after the other
  std::int64_t contexts = 2;        // that share the micro-batches; fewer when there are fewer of those
  double learning_rate = 4.5e-3;    // highest; warmed up, then brought down along a cosine
  std::int64_t warmup_steps = 20;
  double final_rate = 0.02;  // of the highest
  double weight_decay = 0.1;
  double beta1 = 0.9;
  double beta2 = 0.99;
  double clip_norm = 1.0;

  /// The learning rate of a step when `fraction` (0 to 1) of the run is done.
  double rate_at(std::int64_t step, double fraction) const;

  /// AdamW's options.
  attributes optimizer_options() const;

  /// Throws std::runtime_error that names the option whose value can't be.
  void check() const;
};

}  // namespace troupe::apps::charlm
