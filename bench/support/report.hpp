// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <filesystem>

#include "runs.hpp"
#include "stopwatch.hpp"

namespace troupe::bench {

/// What the ratio of a row should be.
struct bar {
  double bound = 0;
  bool is_upper = false;

  bool holds(double ratio) const { return is_upper ? ratio <= bound : ratio >= bound; }
};
constexpr bar at_least(double bound) { return {bound, false}; }
constexpr bar at_most(double bound) { return {bound, true}; }

/// The spreads of a row's figures, each in the unit of its figure.
struct row_spreads {
  value_range peer{};
  value_range troupe{};
  value_range floor{};
  value_range ratio{};  // of the turns' ratios; not known: it follows from the spreads of peer and troupe
};

/// One row of a table of figures.
struct row {
  results value{};
  double ratio = 0;
  std::string note{};  // what else was counted; may be empty
  row_spreads spreads{};
  std::string name{};
  std::string unit{};
  bar should_be{};
  std::string text{};  // a plain sentence that says what the row measures

  bool holds() const { return should_be.holds(ratio); }
};

/// "12.3".
std::string short_number(double value);

/// The table as text: a line with the names of the columns, then one line per row. `peer` is the name of the column of peers.
std::string table_of(const std::vector<row>& rows, const std::string& peer);

/// Writes `<folder>/<name>.json` (a list of rows) and `<folder>/<name>.txt` (the table). Each file is put in place by a
/// rename. Throws std::runtime_error with the file's name on failure.
void write_report(const std::filesystem::path& folder, const std::string& name, const std::vector<row>& rows,
                  const std::string& peer);

/// Puts the rows into the report that another program has written: in place of rows of the same names, and else at its end. Without such
/// a report, writes one. Throws std::runtime_error also if the report can't be read.
void add_to_report(const std::filesystem::path& folder, const std::string& name, const std::vector<row>& rows,
                   const std::string& peer);

}  // namespace troupe::bench
