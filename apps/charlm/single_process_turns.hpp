// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>

#include <c10/core/Device.h>

#include "apps/charlm/run_state.hpp"
#include "apps/charlm/single_process.hpp"

namespace troupe::apps::charlm {

/// Measures training in this process alone, beside the training on the cluster. Half of the time is spent before the cluster
/// trains, the other half in turns between the cluster's steps, because the speed of the machine may change.
///   SP-1  with 0 seconds nothing is measured.
///   SP-2  turns come due at even fractions of what is left of the training. Each turn runs once. Several turns that are due at
///         once run as one.
class single_process_turns {
 public:
  /// `seconds`: for the whole measurement. `stop`: ends a turn early.
  single_process_turns(double seconds, std::function<bool()> stop) : seconds_(seconds), stop_(std::move(stop)) {}

  /// Runs the first half, before the training, with one thread and with `threads` inside an operation. With 0 seconds, does
  /// nothing.
  void begin(const run_state& state, const corpus& data, int threads, c10::Device device = c10::kCPU);
  /// Runs the turns that are due at this fraction (0 to 1) of the training. Returns false if none is due.
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
