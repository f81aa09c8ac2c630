// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "report.hpp"

namespace troupe::bench {

/// What a row compares: the peer's value with troupe's, or troupe's value with that of another row.
enum class comparison { peer_over_troupe, troupe_over_peer, troupe_over_other };

/// A row of runs that take turns, before it is measured.
struct timed_row {
  std::string name;
  std::string text;  // what the row measures, in one plain sentence
  std::string unit;
  double per_second;  // one second per run, in this unit
  bar should_be;
  std::function<workload()> make;  // throws if the gradients of the runners differ
  comparison compare = comparison::peer_over_troupe;
  std::string other{};               // used with troupe_over_other
  bool memory = false;               // measure KiB at the peak of a run instead of time
  std::function<results()> count{};  // gives the values of the row instead of runs
};

/// A program that measures such rows in turns, prints a table and writes a report.
struct row_program {
  std::string name;          // of the report; the program's name is `<name>_bench`
  std::string what_it_does;  // for --help
  std::string example;
  std::string peer;  // the name of the column of peers
  std::function<std::vector<timed_row>(bool quick)> rows;
};

/// Measures, prints, and writes `<name>.json` and `<name>.txt`. Returns the exit status.
int run(const row_program& program, int argc, char** argv);

}  // namespace troupe::bench
