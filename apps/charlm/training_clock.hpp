// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>

namespace troupe::apps::charlm {

/// Measures how long a training takes. `Clock`: a clock of std::chrono; tests use a clock of their own.
///   CT-1  seconds() counts the earlier parts of a continued run, and leaves out the times given to leave_out().
///   CT-2  seconds_per_step() is the mean of the noted steps; 0 before the first one.
template <class Clock = std::chrono::steady_clock>
class training_clock {
 public:
  /// `seconds_before`: how long a continued run has trained so far.
  void start(double seconds_before) {
    begun_ = Clock::now();
    seconds_before_ = seconds_before;
  }
  void leave_out(typename Clock::duration time) { begun_ += time; }
  void note_step(double seconds) {
    ++steps_;
    step_seconds_ += seconds;
  }

  double seconds() const { return seconds_before_ + std::chrono::duration<double>(Clock::now() - begun_).count(); }
  double seconds_per_step() const { return steps_ > 0 ? step_seconds_ / static_cast<double>(steps_) : 0; }

 private:
  typename Clock::time_point begun_{};
  double seconds_before_ = 0;
  std::int64_t steps_ = 0;
  double step_seconds_ = 0;
};

}  // namespace troupe::apps::charlm
