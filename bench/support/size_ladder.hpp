// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/bench/support/report_test.cpp
#pragma once

#include <cstddef>
#include <vector>

#include "report.hpp"

namespace troupe::bench {

/// The sizes of a ladder: 64 B to 256 MiB, each four times the size before it. `quick`: to 1 KiB.
std::vector<std::size_t> sizes_of_ladder(bool quick);

/// How often a ladder measures a size: sizes of 64 KiB to 1 MiB most often. They are the nearest to their peers, and depend on which thread
/// shares a core with which.
int turns_of_ladder(std::size_t bytes, bool quick);

/// What bytes there and back take, for one size.
struct ladder_step {
  std::size_t bytes = 0;
  double peer = 0;  // of the best peer
  double troupe = 0;

  double ratio() const { return peer / troupe; }
};

/// The row of the size at which the ratio is the least. Its note has the ratio of each size. Pre: there is a step.
row row_of_ladder(const std::vector<ladder_step>& steps);

/// "64 B", "4 KiB", "16 MiB".
std::string size_text(std::size_t bytes);

}  // namespace troupe::bench
