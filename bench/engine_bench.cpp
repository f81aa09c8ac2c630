// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstdio>
#include <exception>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include <ATen/Parallel.h>
#include <CLI/CLI.hpp>

#include "engine_rows.hpp"
#include "memory_meter.hpp"
#include "report.hpp"
#include "stopwatch.hpp"

using namespace troupe::bench;

namespace {

constexpr const char* what_it_does =
  "Measures backward passes on libtorch's own engine, on troupe's and in a bare loop over the same functions, in turns on one "
  "thread, and prints a table: ratio is libtorch's cost by troupe's (of a ..._memory row troupe's by libtorch's, of "
  "chain_1000000 its cost per function by that of chain_1000). Also writes engine.json and engine.txt.";
constexpr const char* example = "Example: engine_bench --only chain_1000 mlp_batch_1 --out out/bench";

/// Measures rows, each at most once.
class table {
 public:
  explicit table(bool quick) : definitions_(engine_rows(quick)), spend_(quick ? effort::quick() : effort()) {}

  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& each : definitions_) {
      all.push_back(each.name);
    }
    return all;
  }

  row measured(const std::string& name) {
    const auto& definition =
      *std::find_if(definitions_.begin(), definitions_.end(), [&](const auto& each) { return each.name == name; });
    row made{definition.name, definition.unit, value(definition), 0, definition.bar, false};
    made.at_most = definition.compare != comparison::peer_over_troupe;
    switch (definition.compare) {
      case comparison::peer_over_troupe:
        made.ratio = made.value.peer / made.value.troupe;
        break;
      case comparison::troupe_over_peer:
        made.ratio = made.value.troupe / made.value.peer;
        break;
      case comparison::troupe_over_other:
        made.ratio = made.value.troupe / measured(definition.other).value.troupe;
        break;
    }
    return made;
  }

 private:
  results value(const row_definition& definition) {
    if (const auto found = values_.find(definition.name); found != values_.end()) {
      return found->second;
    }
    std::fprintf(stderr, "%s ...\n", definition.name.c_str());
    try {
      return values_[definition.name] = measure_now(definition);
    } catch (const std::exception& failed) {
      throw std::runtime_error(definition.name + ": " + failed.what());
    }
  }

  results measure_now(const row_definition& definition) const {
    const workload work = definition.make();
    results found;
    if (!definition.memory) {
      found = measure(definition.name, work, spend_);
      for (const runner which : runners) {
        found[which] *= definition.per_second;
      }
      return found;
    }
    for (const runner which : {runner::peer, runner::troupe}) {
      work.before();
      found[which] = static_cast<double>(peak_memory([&] { work.run(which); })) / 1024;
    }
    return found;
  }

  std::vector<row_definition> definitions_;
  effort spend_;
  std::map<std::string, results> values_;
};

}  // namespace

int main(int argc, char** argv) {
  CLI::App options(what_it_does, "engine_bench");
  options.footer(example);
  std::vector<std::string> only;
  std::string folder = "out/bench";
  bool quick = false;
  options.add_option("--only", only, "Names of the rows to measure (default: all)");
  options.add_option("--out", folder, "Folder for engine.json and engine.txt")->capture_default_str();
  options.add_flag("--quick", quick, "One short series a row, smaller graphs: checks that it works, measures nothing");
  CLI11_PARSE(options, argc, argv);
  try {
    at::set_num_threads(1);
    table all(quick);
    const std::vector<std::string> names = all.names();
    for (const std::string& name : only) {
      if (std::find(names.begin(), names.end(), name) == names.end()) {
        std::string known;
        for (const std::string& each : names) {
          known += " " + each;
        }
        throw std::runtime_error("--only: there is no row '" + name + "'; there are" + known);
      }
    }
    std::vector<row> rows;
    for (const std::string& name : names) {
      if (only.empty() || std::find(only.begin(), only.end(), name) != only.end()) {
        rows.push_back(all.measured(name));
      }
    }
    std::fputs(table_of(rows).c_str(), stdout);
    write_report(folder, "engine", rows);
    std::printf("written to %s/engine.json and .txt\n", folder.c_str());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "engine_bench: %s\n", error.what());
    return 1;
  }
  return 0;
}
