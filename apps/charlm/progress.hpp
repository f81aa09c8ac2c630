// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>

namespace troupe::apps::charlm {

/// What a run reports while it trains.
struct progress_report {
  std::int64_t step = 0;
  double fraction = 0;  // part of the run that is done, 0 to 1
  double loss = 0;
  std::optional<double> validation_loss;
  double tokens_per_second = 0;
  double seconds_left = 0;
};

/// Shows progress: on a terminal of `columns`, one line that is redrawn in place; elsewhere, plain lines.
///   PR-1  on a terminal the line never wraps, and a message is never mixed into the line.
///   PR-2  elsewhere a report is printed at most once in `every`, and nothing is redrawn.
class progress {
 public:
  progress(std::ostream& out, bool terminal, std::size_t columns = 80,
           std::chrono::milliseconds every = std::chrono::seconds{5});
  /// Progress on stdout, whether stdout is a terminal or not.
  static progress on_stdout();

  void report(const progress_report& now);
  /// Prints a message on a line of its own.
  void message(const std::string& line);
  /// Keeps the current line and continues below it.
  void finish();

  /// The line of a report. The line has a bar if `columns` has room for one.
  static std::string line_of(const progress_report& now, std::size_t columns, bool terminal);

 private:
  std::ostream& out_;
  bool terminal_;
  std::size_t columns_;
  std::chrono::milliseconds every_;
  std::chrono::steady_clock::time_point last_{};
  std::string shown_;
};

}  // namespace troupe::apps::charlm
