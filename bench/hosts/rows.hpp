// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "../support/report.hpp"

namespace troupe::bench {

/// How rows are measured.
struct hosts_effort {
  bool quick = false;      // so little that the figures mean nothing: to see that the rows work
  double minutes = 3;      // of chaos_hosts
  std::uint32_t seed = 1;  // of chaos_hosts
};

/// The figures of a row.
struct hosts_figures {
  results value{};  // `peer`: what troupe is compared with, if the row compares
  double ratio = 0;
  std::string note{};  // what else was counted
};

/// A row of hosts_bench. `measure` throws std::exception if the row can't be measured.
struct hosts_row {
  std::string name;
  std::string unit;
  double bar = 0;
  bool at_most = false;
  std::function<hosts_figures(const hosts_effort&)> measure{};
};

/// All rows but those of security and of wire formats, in the order of the table.
std::vector<hosts_row> hosts_rows();

/// The rows of one kind.
std::vector<hosts_row> link_rows();
std::vector<hosts_row> member_rows();
std::vector<hosts_row> simulated_rows();
std::vector<hosts_row> training_rows();
std::vector<hosts_row> chaos_rows();
/// Those of `hosts_bench --security`.
std::vector<hosts_row> security_rows();
/// Those of `hosts_bench --wire`.
std::vector<hosts_row> wire_rows();

/// "12.3".
std::string short_number(double value);

/// The middle one of the values.
double middle(std::vector<double> values);

}  // namespace troupe::bench
