// SPDX-License-Identifier: BSD-3-Clause
#include "results.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <stdexcept>

#include "figure_text.hpp"

namespace troupe::bench {

namespace {

namespace fs = std::filesystem;

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

std::string date_of(const fs::path& file) {
  const auto written = std::chrono::file_clock::to_sys(fs::last_write_time(file));
  return date_text(std::chrono::system_clock::to_time_t(std::chrono::floor<std::chrono::seconds>(written)));
}

std::string cell(double value) {
  char text[32];
  std::snprintf(text, sizeof text, value == 0 ? "-" : value < 10 ? "%.2f" : value < 100 ? "%.1f" : "%.0f", value);
  return text;
}

}  // namespace

results_of_folder read_results(const fs::path& folder) {
  if (!fs::is_directory(folder))
    throw std::runtime_error("there is no folder '" + folder.string() + "'; expected one that benchmarks have written into");
  std::vector<fs::path> files;
  for (const auto& each : fs::directory_iterator(folder))
    if (ends_with(each.path().filename().string(), ".json")) files.push_back(each.path());
  std::sort(files.begin(), files.end());
  results_of_folder found;
  found.where = read_machine(folder);
  for (const auto& each : files) {
    if (each.filename() == "machine.json") continue;
    if (ends_with(each.filename().string(), ".curves.json")) {
      const auto plots = read_curves(each);
      found.plots.insert(found.plots.end(), plots.begin(), plots.end());
    } else if (each.stem().extension().empty()) {  // NAME.KIND.json is a program's own
      found.reports.push_back({each.stem().string(), date_of(each), read_rows(each)});
    }
  }
  if (found.reports.empty() && found.plots.empty())
    throw std::runtime_error("'" + folder.string() + "' has no figures: expected NAME.json or NAME.curves.json of a benchmark");
  return found;
}

std::string ratios_as_text(const std::vector<written_rows>& reports) {
  std::size_t width = 4;
  for (const auto& report : reports)
    for (const auto& each : report.rows) width = std::max(width, each.name.size() + 2);
  std::string text;
  char line[256];
  const auto put = [&](const std::string& name, const char* unit, const std::string& floor, const std::string& peer,
                       const std::string& troupe, const std::string& ratio, const std::string& rest) {
    std::snprintf(line, sizeof line, "%-*s  %-12s %9s %9s %9s %9s  %s\n", static_cast<int>(width), name.c_str(), unit,
                  floor.c_str(), peer.c_str(), troupe.c_str(), ratio.c_str(), rest.c_str());
    text += line;
  };
  put("name", "unit", "floor", "peer", "troupe", "ratio", "bar");
  std::size_t count = 0;
  std::size_t short_rows = 0;
  for (const auto& report : reports) {
    text += report.name + "\n";
    for (const auto& each : report.rows) {
      ++count;
      short_rows += each.holds() ? 0 : 1;
      char bar[64];
      std::snprintf(bar, sizeof bar, "%s %-8.6g %s", each.at_most ? "<=" : ">=", each.bar, each.holds() ? "ok" : "short");
      put("  " + each.name, each.unit.c_str(), cell(each.value.floor), cell(each.value.peer), cell(each.value.troupe),
          each.ratio == 0 ? "0" : cell(each.ratio), bar);
    }
  }
  return text + std::to_string(count - short_rows) + " of " + std::to_string(count) + " figures reach their bars\n";
}

}  // namespace troupe::bench
