// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>

namespace troupe::apps::charlm {

/// What a run says of itself while it trains.
struct progress_report {
  std::int64_t step = 0;
  double fraction = 0;  // done, 0 to 1
  double loss = 0;
  std::optional<double> validation_loss;
  double tokens_per_second = 0;
  double seconds_left = 0;
};

/// One line redrawn in place on a terminal of `columns`, plain lines elsewhere.
///   PR-1  on a terminal the line never wraps, and a message is never mixed into it.
///   PR-2  elsewhere a report is printed at most once in `every`, and nothing is redrawn.
class progress {
 public:
  progress(std::ostream& out, bool terminal, std::size_t columns = 80,
           std::chrono::milliseconds every = std::chrono::seconds{5});
  /// To stdout, whatever it is.
  static progress on_stdout();

  void report(const progress_report& now);
  /// A line of its own.
  void message(const std::string& line);
  /// Leaves the line standing and goes on below it.
  void finish();

  /// The line of a report: with a bar if `columns` has room for one.
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
