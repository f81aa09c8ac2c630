// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "results.hpp"

namespace troupe::bench {

enum class verdict { same, worse, better, only_old, only_new };

/// A row of two runs. Ratios are compared, because both of their sides ran in turns on one machine.
struct compared_row {
  std::string report;
  row before{};  // of a row that only one run has, the other side is empty
  row after{};
  double change = 0;  // of the ratio, by the old one; above 0: larger
  double noise = 0;   // a change up to this much says nothing
  verdict what = verdict::same;
};

/// Compares the rows of the same report and name. A row is worse or better if its ratio changed by more than the spreads of both runs
/// together, and by more than `least_noise` (0.05: 5 %).
std::vector<compared_row> compare(const std::vector<written_rows>& before, const std::vector<written_rows>& after,
                                  double least_noise);

/// The reports of two files, or of two folders. Of two files the names do not count. Throws std::runtime_error that names the file if it is
/// missing or malformed.
struct both_runs {
  results_of_folder before{};
  results_of_folder after{};
};
both_runs read_both(const std::filesystem::path& before, const std::filesystem::path& after);

/// The rows that changed or that only one run has (`all`: every row) as a table, and how many there are of each kind.
std::string comparison_as_text(const std::vector<compared_row>& rows, bool all);

/// A line for each fact in which the machines of two runs differ, except for the date and the load. Also says if a run was a quick one.
std::string differences_of(const results_of_folder& before, const results_of_folder& after);

}  // namespace troupe::bench
