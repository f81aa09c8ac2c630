// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <memory>

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

/// A copy of the model that is trained in this process alone, in turns with the cluster, as a machine's speed changes while both
/// run: whole batches, the same AdamW and clipping. The first step of a turn is not counted: it fills caches.
class single_process {
 public:
  single_process(const model_shape& shape, const recipe& how, const corpus& data);
  ~single_process();

  /// Trains for about `seconds`, a third of them with one thread inside an operation, the others with `threads`. Ends early
  /// when `stop` says so.
  void compare(int threads, double seconds, const std::function<bool()>& stop);
  /// Trains on with what was faster then.
  void train(double seconds, const std::function<bool()>& stop);

  single_process_speed speed() const;

 private:
  class trainee;
  struct timing {
    int threads = 0;
    double tokens = 0;
    double seconds = 0;
    double speed() const { return seconds > 0 ? tokens / seconds : 0; }
  };

  void run(timing& with, double seconds, const std::function<bool()>& stop);

  double tokens_a_step_;
  std::unique_ptr<trainee> trainee_;
  timing one_thread_;
  timing all_threads_;
  timing* best_ = &one_thread_;  // of the first turn
};

}  // namespace troupe::apps::charlm
