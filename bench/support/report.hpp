// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "stopwatch.hpp"
#include "value_range.hpp"

namespace troupe::bench {

/// The spreads of a row's figures, each in the unit of its figure.
struct row_spreads {
  value_range peer{};
  value_range troupe{};
  value_range floor{};
  value_range ratio{};  // of the turns' ratios; not known: it follows from the spreads of peer and troupe
};

/// One row of a table of figures.
struct row {
  std::string name;
  std::string unit;
  results value{};
  double ratio = 0;
  double bar = 0;        // bound of the ratio
  bool at_most = false;  // true: the ratio should be at most `bar`; false: at least `bar`
  std::string note{};    // what else was counted; may be empty
  row_spreads spreads{};
  std::string peer_name{};  // what the peer is; write_report fills it in

  bool holds() const { return at_most ? ratio <= bar : ratio >= bar; }
};

/// The table as text: a line with the names of the columns, then one line per row. `peer` is the name of the column of peers.
std::string table_of(const std::vector<row>& rows, const std::string& peer = "libtorch");

/// Writes `<folder>/<name>.json` (a list of rows) and `<folder>/<name>.txt` (the table). Each file is put in place by a
/// rename. Throws std::runtime_error with the file's name on failure.
void write_report(const std::filesystem::path& folder, const std::string& name, const std::vector<row>& rows,
                  const std::string& peer = "libtorch");

/// The rows of a report; none if there is no such report. Throws std::runtime_error if it can't be read.
std::vector<row> read_report(const std::filesystem::path& folder, const std::string& name);

/// The rows of a report's JSON file. Throws std::runtime_error with the file's name if it is missing or no report.
std::vector<row> read_rows(const std::filesystem::path& file);

/// Puts the rows into the report that another program has written: in place of rows of the same names, and else at its end. Without such
/// a report, writes one. Throws std::runtime_error also if the report can't be read.
void add_to_report(const std::filesystem::path& folder, const std::string& name, const std::vector<row>& rows,
                   const std::string& peer);

}  // namespace troupe::bench
