// SPDX-License-Identifier: BSD-3-Clause
#include <cstdio>
#include <cstdlib>
#include <map>

#include <CLI/CLI.hpp>

#include "../support/bench_program.hpp"
#include "../support/json_file.hpp"
#include "../support/scratch_folder.hpp"

namespace troupe::bench {

namespace {

namespace fs = std::filesystem;

/// A row of the report, and the row of engine_bench that it compares.
struct compared_row {
  std::string name;
  std::string measured;
};

struct both_programs {
  fs::path before;
  fs::path after;
  int turns = 5;
};

constexpr bar at_least_as_fast = at_least(0.97);

std::string quoted(const fs::path& path) {
  if (path.string().find('\'') != std::string::npos)
    throw std::runtime_error("the path " + path.string() +
                             " has a quotation mark, which the shell would not hand on; use another folder");
  return "'" + path.string() + "'";
}

/// What each measured row of the program `engine_bench` costs on troupe's engine, is added to `costs`. Returns the units of the rows.
std::map<std::string, std::string> run_once(const fs::path& engine_bench, const std::vector<compared_row>& chosen, bool quick,
                                            std::map<std::string, std::vector<double>>& costs) {
  const scratch_folder folder;
  auto command = quoted(fs::absolute(engine_bench)) + " --out " + quoted(folder.path()) + (quick ? " --quick" : "") + " --only";
  for (const auto& each : chosen) command += " " + each.measured;
  // NOLINTNEXTLINE(concurrency-mt-unsafe): this program has one thread
  const int status = std::system((command + " > " + quoted(folder.path() / "printed.txt")).c_str());
  const auto report = folder.path() / "engine.json";
  std::map<std::string, std::string> units;
  if (fs::exists(report))
    for (const auto& each : read_json(report)) {
      const auto name = each.at("name").get<std::string>();
      units[name] = each.at("unit").get<std::string>();
      costs[name].push_back(each.at("troupe").get<double>());
    }
  for (const auto& each : chosen)
    if (!units.contains(each.measured))
      throw std::runtime_error("'" + engine_bench.string() + "' has not measured " + each.measured + " (status " +
                               std::to_string(status) + "); is it an engine_bench?");
  return units;
}

int compare(const both_programs& programs, const bench_choice& how) {
  std::vector<compared_row> chosen{
    {"one_lane_chain_1000", "chain_1000"}, {"one_lane_wide_1000", "wide_1000"}, {"one_lane_mlp_batch_1", "mlp_batch_1"}};
  keep_only(how.only, chosen);
  std::map<std::string, std::vector<double>> costs_before;
  std::map<std::string, std::vector<double>> costs_after;
  std::map<std::string, std::string> units;
  for (int turn = 0; turn < programs.turns; ++turn) {
    std::fprintf(stderr, "one_lane: turn %d of %d\n", turn + 1, programs.turns);
    run_once(programs.before, chosen, how.quick, costs_before);
    units = run_once(programs.after, chosen, how.quick, costs_after);
  }
  measured found;
  for (const auto& each : chosen) {
    const double then = middle(costs_before[each.measured]);
    const double now = middle(costs_after[each.measured]);
    found.rows.push_back({.value = {then, now, 0},
                          .ratio = then / now,
                          .note = "beside: the earlier program",
                          .name = each.name,
                          .unit = units[each.measured],
                          .should_be = at_least_as_fast,
                          .text = each.measured + " on one thread, with an earlier program (peer) and with this one."});
  }
  write_measured(found, how.folder, "devices", "beside", true);
  const auto holds = [](const row& each) { return each.holds(); };
  return how.quick || std::all_of(found.rows.begin(), found.rows.end(), holds) ? 0 : 1;
}

constexpr const char* what_it_does =
  "Measures passes on one thread with this build and with an earlier one, in turns: chain_1000, wide_1000 and mlp_batch_1 of "
  "engine_bench. ratio is the earlier cost by today's, medians over the turns. Adds the rows one_lane_... to devices.json and "
  "devices.txt.";
constexpr const char* example =
  "Example: one_lane --before ../earlier/build/release/bench/engine_bench --after build/release/bench/engine_bench";

void add_options(CLI::App& app, both_programs& to) {
  app.add_option("--before", to.before, "engine_bench of the earlier state")->required()->check(CLI::ExistingFile);
  app.add_option("--after", to.after, "engine_bench of this state")->required()->check(CLI::ExistingFile);
  app.add_option("--turns", to.turns, "How often each program runs")->check(CLI::Range(1, 1000))->capture_default_str();
}

}  // namespace

}  // namespace troupe::bench

int main(int argc, char** argv) {
  using namespace troupe::bench;
  both_programs programs;
  return run({.name = "one_lane",
              .what_it_does = what_it_does,
              .footer = example,
              .files = "devices.json and devices.txt",
              .run = [&](const bench_choice& how) { return compare(programs, how); },
              .add_options = [&](CLI::App& app) { add_options(app, programs); }},
             argc, argv);
}
