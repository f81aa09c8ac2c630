// SPDX-License-Identifier: BSD-3-Clause
#include <unistd.h>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "distributed_rows.hpp"
#include "../support/report.hpp"
#include "../support/row_choice.hpp"
#include "turns.hpp"

using namespace troupe::bench;

namespace {

constexpr const char* what_it_does =
  "Measures calls and distributed backward passes between processes on loopback, on PyTorch's own TensorPipe agent and "
  "distributed engine and on troupe, and prints a table of medians: ratio is PyTorch's time by troupe's, floor a bare TCP "
  "ping-pong of as many bytes and round trips. The three take turns, each in processes that exist during its turns alone. Rows "
  "that PyTorch has no counterpart for show troupe's own figures: smart_over_fast fast mode's time by smart mode's, nodes_* "
  "the "
  "cost of a node by that of one of two, contexts_* MiB. Also writes distributed.json and distributed.txt.";
constexpr const char* example = "Example: distributed_bench --only small_call backward_4 --out out/bench";

/// A folder for this run only, removed at the end.
struct own_folder {
  own_folder() : path(std::filesystem::temp_directory_path() / ("troupe_bench_" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(path);
  }
  ~own_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  std::filesystem::path path;
};

/// Adds the runs of one turn to the runs of all turns.
void add(times& all, times more) {
  all.resize(more.size());
  for (std::size_t i = 0; i < more.size(); ++i) all[i].insert(all[i].end(), more[i].begin(), more[i].end());
}

/// The spread of the medians of the sweeps, which have the same count of runs.
value_range spread_of_sweeps(const std::vector<double>& runs, int sweeps, double figure) {
  std::vector<double> medians;
  const auto length = static_cast<std::ptrdiff_t>(runs.size()) / sweeps;
  for (auto begin = runs.begin(); length > 0 && runs.end() - begin >= length; begin += length)
    medians.push_back(median({begin, begin + length}));
  return spread_of(std::move(medians), figure);
}

row row_of(const definition& each, const std::vector<double>& torch, const std::vector<double>& troupe,
           const std::vector<double>& floor, int sweeps) {
  row result{.name = each.name, .unit = each.unit, .bar = each.bar, .at_most = each.at_most};
  if (each.alone) {
    result.value = {troupe[0], troupe[1], 0};
    result.ratio = troupe[2];
  } else {
    result.value = {median(torch), median(troupe), floor.empty() ? 0 : median(floor)};
    result.ratio = result.value.peer / result.value.troupe;
    result.spreads = {.peer = spread_of_sweeps(torch, sweeps, result.value.peer),
                      .troupe = spread_of_sweeps(troupe, sweeps, result.value.troupe),
                      .floor = spread_of_sweeps(floor, sweeps, result.value.floor)};
  }
  return result;
}

void run(const std::vector<definition>& chosen, bool quick, const std::string& folder) {
  const own_folder mine;
  std::vector<definition> both;
  std::vector<definition> alone;
  for (const auto& each : chosen) (each.alone ? alone : both).push_back(each);
  const int sweeps = quick || both.empty() ? 1 : 5;
  times torch;
  times ours;
  times floor;
  int turns = 0;
  const auto turn = [&](side who, const std::vector<definition>& rows) {
    return take_turn(who, rows, quick ? 0 : 1.0 / sweeps, quick, mine.path / std::to_string(turns++));
  };
  for (int sweep = 1; sweep <= sweeps && !both.empty(); ++sweep) {
    std::fprintf(stderr, "-- sweep %d of %d: PyTorch, troupe, floor\n", sweep, sweeps);
    add(torch, turn(side::torch, both));
    add(ours, turn(side::troupe, both));
    add(floor, turn(side::floor, both));
  }
  times own;
  if (!alone.empty()) {
    std::fprintf(stderr, "-- rows of troupe alone\n");
    own = turn(side::troupe, alone);
  }
  std::vector<row> all;
  for (std::size_t i = 0, shared = 0, single = 0; i < chosen.size(); ++i)
    if (chosen[i].alone)
      all.push_back(row_of(chosen[i], {}, own[single++], {}, sweeps));
    else
      all.push_back(row_of(chosen[i], torch[shared], ours[shared], floor[shared], sweeps)), ++shared;
  std::printf("%s", table_of(all).c_str());
  std::fflush(stdout);
  write_report(folder, "distributed", all);
}

int measure(int argc, char** argv) {
  CLI::App app{what_it_does};
  app.footer(example);
  std::vector<std::string> only;
  std::string folder = "out/bench";
  bool quick = false;
  app.add_option("--only", only, "measure these rows");
  app.add_option("--out", folder, "where to write distributed.json and distributed.txt")->capture_default_str();
  app.add_flag("--quick", quick, "two runs a row: to see that it works");
  CLI11_PARSE(app, argc, argv);
  auto chosen = distributed_rows();
  keep_only(chosen, only);
  run(chosen, quick, folder);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a write to a child that has ended must not end this process
  try {
    return measure(argc, argv);
  } catch (const std::exception& failed) {
    std::fprintf(stderr, "distributed_bench: %s\n", failed.what());
  } catch (...) {
    std::fputs("distributed_bench: an exception of an unknown type\n", stderr);
  }
  return 1;
}
