// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/apps/charlm/progress_test.cpp, tests/apps/charlm/training_clock_test.cpp
#pragma once

#include <chrono>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>

namespace troupe::apps::charlm {

/// The figures that a run shows while it trains.
struct progress_report {
  std::int64_t step = 0;
  double fraction = 0;  // part of the run that is done, 0 to 1
  double loss = 0;
  std::optional<double> validation_loss;
  double tokens_per_second = 0;
  double seconds_left = 0;
};

/// Shows the progress of a run. On a terminal with `columns` columns, one line is redrawn in place. Elsewhere, plain lines are
/// printed.
///   PR-1  on a terminal the line never wraps, and a message is never mixed into the line.
///   PR-2  without a terminal a report is printed at most once in `every`, and nothing is redrawn.
class progress {
 public:
  progress(std::ostream& out, bool terminal, std::size_t columns = 80,
           std::chrono::milliseconds every = std::chrono::seconds{5});
  /// Returns an object that prints to stdout. It finds out whether stdout is a terminal, and how wide it is.
  static progress on_stdout();

  void report(const progress_report& now);
  /// Prints a message on a line of its own.
  void message(const std::string& line);
  /// Ends the current line; later output begins on the next line.
  void finish();

  /// Returns the line for a report. On a terminal, the line has a bar if `columns` has space for it.
  static std::string line_of(const progress_report& now, std::size_t columns, bool terminal);

 private:
  std::ostream& out_;
  bool terminal_;
  std::size_t columns_;
  std::chrono::milliseconds every_;
  std::chrono::steady_clock::time_point last_{};
  std::string shown_;
};

/// Measures how long a training takes. `Clock`: a clock of std::chrono; tests use a clock of their own.
///   CT-1  seconds() includes the earlier parts of a continued run, and excludes the times that leave_out() got.
///   CT-2  seconds_per_step() is the mean of the steps that note_step() got; 0 before the first one.
template <class Clock = std::chrono::steady_clock>
class training_clock {
 public:
  /// `seconds_before`: how long a continued run has trained before this start.
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
