// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "report.hpp"
#include "round_trips.hpp"

namespace troupe::bench {

/// What a row can't do without, which is its floor.
struct wire {
  int trips = 0;  // round trips; 0: no floor
  std::size_t bytes = 200;
};

/// What a row that troupe alone has comes to.
struct figures {
  results value;
  double ratio = 0;
};

/// A row: PyTorch and troupe both run it, or `alone` measures troupe. Throws std::runtime_error when a gradient is wrong.
struct definition {
  std::string name;
  std::string unit = "us";
  double bar = 0;
  bool at_most = false;
  int runs = 0;
  std::function<double(round_trips&)> run{};  // once: the seconds of what the row measures
  wire least{};
  /// `port` is that of troupe's next process; `quick`: a few runs.
  std::function<figures(round_trips& troupe, std::uint16_t port, bool quick)> alone{};
};

/// All rows of distributed_bench.
std::vector<definition> distributed_rows();

/// In microseconds, of runs in seconds.
double median(std::vector<double> runs);

}  // namespace troupe::bench
