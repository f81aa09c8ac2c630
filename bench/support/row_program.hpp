// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "../engine/engine_rows.hpp"

namespace troupe::bench {

/// A program that measures rows in turns, prints a table and writes a report.
struct row_program {
  std::string name;          // of the report; the program's name is `<name>_bench`
  std::string what_it_does;  // for --help
  std::string example;
  std::string peer = "libtorch";  // the name of the column of peers
  std::function<std::vector<row_definition>(bool quick)> rows;
};

/// Reads `--only`, `--out` and `--quick`, measures, prints and writes `<name>.json` and `<name>.txt`. Returns the exit code.
int run(const row_program& program, int argc, char** argv);

}  // namespace troupe::bench
