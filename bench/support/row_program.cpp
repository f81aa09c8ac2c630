// SPDX-License-Identifier: BSD-3-Clause
#include "row_program.hpp"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <iterator>
#include <map>
#include <stdexcept>
#include <utility>

#include <ATen/Parallel.h>
#include <CLI/CLI.hpp>

#include "memory_meter.hpp"
#include "report.hpp"
#include "stopwatch.hpp"

namespace troupe::bench {

namespace {

/// Measures rows.
class table {
 public:
  table(std::vector<row_definition> rows, bool quick)
      : definitions_(std::move(rows)), spend_(quick ? effort::quick() : effort()) {}

  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& each : definitions_) all.push_back(each.name);
    return all;
  }

  /// Measures a row once more and keeps the best result so far. The graph is made anew each time, because the place of a large
  /// graph in memory changes the cost of its pass by a quarter.
  void measure_once_more(const std::string& name) {
    const row_definition& row = definition(name);
    std::fprintf(stderr, "%s\n", name.c_str());
    try {
      results found = row.memory ? peaks(row.make()) : times(row);
      const auto [best, fresh] = values_.emplace(name, found);
      for (const runner which : runners) {
        best->second[which] = std::min(best->second[which], found[which]);
        sweeps_[name][which].push_back(found[which]);
      }
    } catch (const std::exception& failed) {
      throw std::runtime_error(name + ": " + failed.what());
    }
    if (!row.other.empty() && values_.count(row.other) == 0) measure_once_more(row.other);
  }

  row measured(const std::string& name) {
    const row_definition& from = definition(name);
    row made{from.name, from.unit, values_.at(name), 0, from.bar, from.compare != comparison::peer_over_troupe};
    switch (from.compare) {
      case comparison::peer_over_troupe:
        made.ratio = made.value.peer / made.value.troupe;
        break;
      case comparison::troupe_over_peer:
        made.ratio = made.value.troupe / made.value.peer;
        break;
      case comparison::troupe_over_other:
        made.ratio = made.value.troupe / values_.at(from.other).troupe;
        break;
    }
    auto& sweeps = sweeps_.at(name);
    made.spreads = {.peer = spread_of(sweeps[runner::peer], made.value.peer),
                    .troupe = spread_of(sweeps[runner::troupe], made.value.troupe),
                    .floor = spread_of(sweeps[runner::floor], made.value.floor)};
    return made;
  }

 private:
  const row_definition& definition(const std::string& name) const {
    return *std::find_if(definitions_.begin(), definitions_.end(), [&](const auto& each) { return each.name == name; });
  }

  static results peaks(const workload& work) {
    results found;
    for (const runner which : {runner::peer, runner::troupe})
      found[which] = static_cast<double>(peak_memory(work.before, [&] { work.run(which); })) / 1024;
    return found;
  }

  results times(const row_definition& row) const {
    results found = measure(row.name, row.make(), spend_);
    for (const runner which : runners) found[which] *= row.per_second;
    return found;
  }

  std::vector<row_definition> definitions_;
  effort spend_;
  std::map<std::string, results> values_;
  std::map<std::string, std::map<runner, std::vector<double>>> sweeps_;  // the results of each sweep
};

/// The chosen names of rows, in the order of the table. Throws if a row does not exist.
std::vector<std::string> chosen(const std::vector<std::string>& all, const std::vector<std::string>& only) {
  for (const std::string& name : only) {
    if (std::find(all.begin(), all.end(), name) == all.end()) {
      std::string known;
      for (const std::string& each : all) known += " " + each;
      throw std::runtime_error("--only: there is no row '" + name + "'; there are" + known);
    }
  }
  std::vector<std::string> names;
  std::copy_if(all.begin(), all.end(), std::back_inserter(names),
               [&](const auto& name) { return only.empty() || std::find(only.begin(), only.end(), name) != only.end(); });
  return names;
}

}  // namespace

int run(const row_program& program, int argc, char** argv) {
  const auto name_of_program = program.name + "_bench";
  CLI::App options(program.what_it_does, name_of_program);
  options.footer(program.example);
  std::vector<std::string> only;
  std::string folder = "out/bench";
  bool quick = false;
  options.add_option("--only", only, "Names of the rows to measure (default: all)");
  options.add_option("--out", folder, "Folder for " + program.name + ".json and " + program.name + ".txt")
    ->capture_default_str();
  options.add_flag("--quick", quick, "One short series a row, smaller graphs: checks that it works, measures nothing");
  CLI11_PARSE(options, argc, argv);
  try {
    at::set_num_threads(1);
    table all(program.rows(quick), quick);
    const std::vector<std::string> names = chosen(all.names(), only);
    // Measures each row in several sweeps, so that a disturbance of the machine affects only one measurement of a row.
    const int sweeps = quick ? 1 : 4;
    for (int sweep = 1; sweep <= sweeps; ++sweep) {
      std::fprintf(stderr, "-- sweep %d of %d\n", sweep, sweeps);
      for (const std::string& name : names) all.measure_once_more(name);
    }
    std::vector<row> rows;
    for (const std::string& name : names) rows.push_back(all.measured(name));
    std::fputs(table_of(rows, program.peer).c_str(), stdout);
    write_report(folder, program.name, rows, program.peer);
    std::printf("written to %s/%s.json and .txt\n", folder.c_str(), program.name.c_str());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", name_of_program.c_str(), error.what());
    return 1;
  }
  return 0;
}

}  // namespace troupe::bench
