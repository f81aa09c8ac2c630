// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "../support/report.hpp"
#include "round_trips.hpp"

namespace troupe::bench {

/// The messages that a row needs at least. A bare TCP exchange of the same messages is the row's floor.
struct wire {
  int trips = 0;  // round trips; 0: the row has no floor
  std::size_t bytes = 200;
};

/// The figures of a row that only troupe runs.
struct figures {
  results value;
  double ratio = 0;
};

/// A row. Either PyTorch and troupe both run the row (`run`), or only troupe does (`alone`). Both functions throw
/// std::runtime_error if a gradient is wrong.
struct definition {
  std::string name;
  std::string unit = "us";
  double bar = 0;
  bool at_most = false;
  int runs = 0;
  std::function<double(round_trips&)> run{};  // runs once and returns the seconds that the row measures
  wire least{};
  /// `port`: the port of troupe's next process. `quick`: only a few runs.
  std::function<figures(round_trips& troupe, std::uint16_t port, bool quick)> alone{};
};

/// All rows of distributed_bench.
std::vector<definition> distributed_rows();

/// The median, in microseconds, of runs that are given in seconds.
double median(std::vector<double> runs);

}  // namespace troupe::bench
