// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <functional>

#include "apps/charlm/model_shape.hpp"
#include "apps/charlm/recipe.hpp"

namespace troupe::apps::charlm {

class corpus;

/// What training in this process alone, with libtorch's own engine, achieves.
struct single_process_speed {
  double tokens_per_second = 0;  // the better of those below
  int threads = 0;               // that it was reached with
  double with_one_thread = 0;
  double with_all_threads = 0;
};

/// Trains a copy of the model for about `time`, with one thread inside an operation and with `threads` in turn, whole batches,
/// the same AdamW and clipping. Steps that load libraries and fill caches are not counted. Ends early when `stop` says so.
single_process_speed measure_single_process(const model_shape& shape, const recipe& how, const corpus& data, int threads,
                                            std::chrono::milliseconds time, const std::function<bool()>& stop);

}  // namespace troupe::apps::charlm
