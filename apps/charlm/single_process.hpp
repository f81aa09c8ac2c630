// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/apps/charlm/single_process_turns_test.cpp, tests/apps/train_test.cpp
#pragma once

#include <functional>
#include <memory>

#include <c10/core/Device.h>

#include "apps/charlm/recipe.hpp"
#include "apps/charlm/run_state.hpp"

namespace troupe::apps::charlm {

class corpus;

/// The speed of training in this process alone, with libtorch's own engine.
struct single_process_speed {
  double tokens_per_second = 0;  // the better one of with_one_thread and with_all_threads
  int threads = 0;               // the number of threads of the better rate
  double with_one_thread = 0;
  double with_all_threads = 0;
};

/// Trains a copy of the model in this process alone, with whole batches and the AdamW and clipping of the cluster. It takes
/// turns with the cluster, because the speed of the machine changes over time. The first step of a turn is not counted, because
/// it fills caches.
class single_process {
 public:
  single_process(const model_shape& shape, const recipe& how, const corpus& data, c10::Device device = c10::kCPU);
  ~single_process();

  /// Trains for about `seconds`: a third of that time with one thread inside an operation, the rest with `threads`. Ends early
  /// if `stop` returns true.
  void compare(int threads, double seconds, const std::function<bool()>& stop);
  /// Continues to train with the number of threads that was faster in compare().
  void train(double seconds, const std::function<bool()>& stop) { run(*best_, seconds, stop); }

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
  timing* best_ = &one_thread_;  // the faster one in compare()
};

/// Measures the speed of training in this process alone. Half of the time is spent before the cluster trains. The other half is
/// spent in turns between steps of the cluster, because the speed of the machine may change.
///   SP-1  with 0 seconds nothing is measured.
///   SP-2  turns come due at even fractions of the training after begin(). Each turn runs once. Several turns that are due at
///         once run as one.
class single_process_turns {
 public:
  /// `seconds`: for the whole measurement. `stop`: returns true to end a turn early.
  single_process_turns(double seconds, std::function<bool()> stop) : seconds_(seconds), stop_(std::move(stop)) {}

  /// Runs the first half, before the training, with one thread and with `threads` inside an operation. With 0 seconds, does
  /// nothing.
  void begin(const run_state& state, const corpus& data, int threads, c10::Device device = c10::kCPU);
  /// Runs the turns that are due when this fraction (0 to 1) of the training is done. Returns false if none is due.
  bool run_due(double fraction);

  bool measures() const noexcept { return seconds_ > 0; }
  double first_half() const noexcept { return seconds_ / 2; }
  single_process_speed speed() const;

 private:
  double seconds_;
  std::function<bool()> stop_;
  std::unique_ptr<single_process> process_;
  double every_ = 1;  // fraction of the training between two turns
  double next_ = 1;
};

}  // namespace troupe::apps::charlm
