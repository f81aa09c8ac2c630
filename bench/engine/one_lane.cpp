// SPDX-License-Identifier: BSD-3-Clause
#include <unistd.h>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "../support/report.hpp"
#include "../support/row_choice.hpp"

namespace troupe::bench {

namespace {

namespace fs = std::filesystem;

/// A row of the report, and the row of engine_bench that it compares.
struct comparison {
  std::string name;
  std::string measured;
};

std::vector<comparison> comparisons() {
  return {{"one_lane_chain_1000", "chain_1000"}, {"one_lane_wide_1000", "wide_1000"}, {"one_lane_mlp_batch_1", "mlp_batch_1"}};
}

struct effort {
  int turns = 5;
  bool quick = false;
};

constexpr double bar = 0.97;

std::string quoted(const fs::path& path) {
  if (path.string().find('\'') != std::string::npos)
    throw std::runtime_error("the path " + path.string() +
                             " has a quotation mark, which the shell would not hand on; use another folder");
  return "'" + path.string() + "'";
}

/// What each measured row of the program `engine_bench` costs on troupe's engine.
std::map<std::string, row> run(const fs::path& engine_bench, const fs::path& folder, const std::vector<comparison>& chosen,
                               bool quick) {
  fs::remove(folder / "engine.json");
  auto command = quoted(fs::absolute(engine_bench)) + " --out " + quoted(folder) + (quick ? " --quick" : "") + " --only";
  for (const auto& each : chosen) command += " " + each.measured;
  // NOLINTNEXTLINE(concurrency-mt-unsafe): this program has one thread
  const int status = std::system((command + " > " + quoted(folder / "printed.txt")).c_str());
  std::map<std::string, row> found;
  for (auto& each : read_report(folder, "engine")) found.emplace(each.name, each);
  for (const auto& each : chosen)
    if (!found.contains(each.measured))
      throw std::runtime_error("'" + engine_bench.string() + "' has not measured " + each.measured + " (status " +
                               std::to_string(status) + "); is it an engine_bench?");
  return found;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

std::vector<row> compare(const fs::path& before, const fs::path& after, const std::vector<comparison>& chosen,
                         const effort& how) {
  const auto folder = fs::temp_directory_path() / ("troupe_one_lane_" + std::to_string(::getpid()));
  fs::create_directories(folder);
  std::map<std::string, std::vector<double>> costs_before;
  std::map<std::string, std::vector<double>> costs_after;
  std::string unit;
  for (int turn = 0; turn < how.turns; ++turn) {
    std::fprintf(stderr, "one_lane: turn %d of %d\n", turn + 1, how.turns);
    for (const auto& [name, cost] : run(before, folder, chosen, how.quick)) costs_before[name].push_back(cost.value.troupe);
    for (const auto& [name, cost] : run(after, folder, chosen, how.quick)) {
      costs_after[name].push_back(cost.value.troupe);
      unit = cost.unit;
    }
  }
  fs::remove_all(folder);
  std::vector<row> rows;
  for (const auto& each : chosen) {
    const double then = median(costs_before[each.measured]);
    const double now = median(costs_after[each.measured]);
    rows.push_back({each.name, unit, {then, now, 0}, then / now, bar, false, "beside: the earlier program"});
  }
  return rows;
}

int compare_programs(int argc, char** argv) {
  CLI::App app{
    "Measures passes on one thread with this build and with an earlier one, in turns: chain_1000, wide_1000 and mlp_batch_1 of "
    "engine_bench. ratio is the earlier cost by today's, medians over the turns. Adds the rows one_lane_... to devices.json "
    "and "
    "devices.txt."};
  app.footer("Example: one_lane --before ../earlier/build/release/bench/engine_bench --after build/release/bench/engine_bench");
  fs::path before;
  fs::path after;
  std::string folder = "out/bench";
  std::vector<std::string> only;
  effort how;
  app.add_option("--before", before, "engine_bench of the earlier state")->required()->check(CLI::ExistingFile);
  app.add_option("--after", after, "engine_bench of this state")->required()->check(CLI::ExistingFile);
  app.add_option("--turns", how.turns, "how often each program runs")->check(CLI::Range(1, 1000))->capture_default_str();
  app.add_option("--out", folder, "where devices.json and devices.txt are")->capture_default_str();
  app.add_option("--only", only, "names of the rows to measure");
  app.add_flag("--quick", how.quick, "one short series a row: checks that it works, measures nothing");
  CLI11_PARSE(app, argc, argv);
  auto chosen = comparisons();
  keep_only(chosen, only);
  const auto rows = compare(before, after, chosen, how);
  std::printf("%s", table_of(rows, "beside").c_str());
  add_to_report(folder, "devices", rows, "beside");
  return how.quick || std::all_of(rows.begin(), rows.end(), [](const row& each) { return each.holds(); }) ? 0 : 1;
}

}  // namespace

}  // namespace troupe::bench

int main(int argc, char** argv) {
  try {
    return troupe::bench::compare_programs(argc, argv);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "one_lane: %s\n", failure.what());
    return 1;
  }
}
