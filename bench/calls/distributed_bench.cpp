// SPDX-License-Identifier: BSD-3-Clause
#include <cstdio>

#include "distributed.hpp"

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

row row_of(const call_row& each, const std::vector<double>& torch, const std::vector<double>& troupe,
           const std::vector<double>& floor, int sweeps) {
  if (each.alone) return labelled({.value = {troupe[0], troupe[1], 0}, .ratio = troupe[2]}, each);
  const results value{median(torch), median(troupe), floor.empty() ? 0 : median(floor)};
  return labelled({.value = value,
                   .ratio = value.peer / value.troupe,
                   .spreads = {.peer = spread_of_sweeps(torch, sweeps, value.peer),
                               .troupe = spread_of_sweeps(troupe, sweeps, value.troupe),
                               .floor = spread_of_sweeps(floor, sweeps, value.floor)}},
                  each);
}

int measure_rows(const bench_choice& how) {
  auto chosen = distributed_rows();
  keep_only(how.only, chosen);
  const bool quick = how.quick;
  std::vector<call_row> both;
  std::vector<call_row> alone;
  for (const auto& each : chosen) (each.alone ? alone : both).push_back(each);
  const int sweeps = quick || both.empty() ? 1 : 5;
  times torch;
  times ours;
  times floor;
  const auto turn = [&](side who, const std::vector<call_row>& rows) {
    return take_turn(who, rows, quick ? 0 : 1.0 / sweeps, quick);
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
  measured found;
  for (std::size_t i = 0, shared = 0, single = 0; i < chosen.size(); ++i)
    if (chosen[i].alone)
      found.rows.push_back(row_of(chosen[i], {}, own[single++], {}, sweeps));
    else
      found.rows.push_back(row_of(chosen[i], torch[shared], ours[shared], floor[shared], sweeps)), ++shared;
  write_measured(found, how.folder, "distributed", "libtorch");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return run({.name = "distributed_bench",
              .what_it_does = what_it_does,
              .footer = example,
              .files = "distributed.json and distributed.txt",
              .run = measure_rows},
             argc, argv);
}
