// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <stdexcept>

#include "curves.hpp"
#include "report.hpp"

namespace CLI {

class App;

}  // namespace CLI

namespace troupe::bench {

/// Thrown for arguments that a program can't follow.
struct wrong_arguments : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Leaves what `only` names in the lists of rows and plots, in their order; everything if `only` is empty. Throws wrong_arguments with
/// all names if there is none of a name.
template <class... Definitions>
void keep_only(const std::vector<std::string>& only, std::vector<Definitions>&... lists) {
  std::vector<std::string> known;
  const auto add = [&](const auto& list) {
    for (const auto& each : list) known.push_back(each.name);
  };
  (add(lists), ...);
  const auto has = [](const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  for (const auto& name : only)
    if (!has(known, name)) {
      std::string all;
      for (const auto& each : known) all += ' ' + each;
      throw wrong_arguments("there is no row or plot '" + name + "'; there are" + all);
    }
  if (!only.empty()) (std::erase_if(lists, [&](const auto& each) { return !has(only, each.name); }), ...);
}

/// What a benchmark is asked for.
struct bench_choice {
  std::vector<std::string> only{};
  std::string folder = "out/bench";
  bool quick = false;
};

/// A program that measures.
struct bench_program {
  std::string name;          // "suite_bench"
  std::string what_it_does;  // for --help
  std::string footer;
  std::string files;  // in the folder of --out
  std::function<int(const bench_choice&)> run;
  std::function<void(CLI::App&)> add_options{};  // more than --only, --out and --quick
};

/// Reads the options, and runs. Returns the exit status: 1 if `run` throws, and 2 for wrong arguments, after the reason was printed.
int run(const bench_program& program, int argc, char** argv);

/// A row before it is measured. `measure` throws std::exception if the row can't be measured. It returns value, ratio, note and spreads.
struct row_definition {
  std::string name;
  std::string unit;
  bar should_be;
  std::string text;  // what the row measures, in one plain sentence
  std::function<row(bool quick)> measure{};
};

/// Thrown by `measure` where the row needs what is not here. That is told, and no failure.
struct skipped : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The same with name, unit, bar and sentence of its definition.
template <class Definition>
row labelled(row measured, const Definition& by) {
  measured.name = by.name;
  measured.unit = by.unit;
  measured.should_be = by.should_be;
  measured.text = by.text;
  return measured;
}

/// A plot before it is measured. `measure` returns all but the names of plot and group.
struct plot_definition {
  std::string name;
  std::function<plot(bool quick)> measure{};
  std::string group{};
};

/// The plots of one group.
std::vector<plot_definition> plots_of_group(const std::string& group, std::vector<plot_definition> plots);

/// One list of several.
template <class Definition>
std::vector<Definition> joined(const std::vector<std::vector<Definition>>& lists) {
  std::vector<Definition> all;
  for (const auto& each : lists) all.insert(all.end(), each.begin(), each.end());
  return all;
}

/// What could be measured.
struct measured {
  std::vector<row> rows{};
  std::vector<plot> plots{};
  bool is_whole = true;  // nothing failed
};

/// Measures one after the other. Prints each name before, and the time and what failed after.
measured measure_each(const std::vector<row_definition>& rows, const std::vector<plot_definition>& plots, bool quick);

/// Prints the table, and writes it and the curves into the folder, each unless it is empty. `adds`: to the rows that are there.
void write_measured(const measured& what, const std::string& folder, const std::string& report, const std::string& peer,
                    bool adds = false);

}  // namespace troupe::bench
