// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/bench/report/report_page_test.cpp
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "../support/curves.hpp"
#include "machine.hpp"
#include "../support/report.hpp"

namespace troupe::bench {

/// The rows that a benchmark has written.
struct written_rows {
  std::string name;  // "engine"
  std::string date;  // when the file was written: "2026-11-25 19:00 UTC"
  std::vector<row> rows{};
};

/// All that benchmarks have written into a folder.
struct results_of_folder {
  std::optional<machine> where{};
  std::vector<written_rows> reports{};  // by name
  std::vector<plot> plots{};            // by the names of their files
};

/// Reads `NAME.json`, `NAME.curves.json` and `machine.json` of a folder. Other files, as `NAME.tables.json`, are the programs' own. Throws std::runtime_error that names the file if one of them is
/// malformed, and if the folder has no report and no curves.
results_of_folder read_results(const std::filesystem::path& folder);

/// One table of all reports: floor, peer, troupe, ratio, bar, "ok" or "short"; then how many of the rows reach their bars.
std::string ratios_as_text(const std::vector<written_rows>& reports);

}  // namespace troupe::bench
