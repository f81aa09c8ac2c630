// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include "../support/bench_program.hpp"

namespace troupe::bench {

/// What chaos_hosts is asked for.
struct chaos_choice {
  double minutes = 3;
  std::uint32_t seed = 1;
};

/// The rows and plots of hosts_bench, by the file that measures them.
std::vector<row_definition> link_rows();
std::vector<row_definition> member_rows();
std::vector<row_definition> simulated_rows();
std::vector<row_definition> training_rows();
std::vector<row_definition> chaos_rows(const chaos_choice& how);
std::vector<plot_definition> host_plots();
/// Those of `hosts_bench --security`.
std::vector<row_definition> security_rows();
/// Those of `hosts_bench --wire`.
std::vector<row_definition> wire_rows();

}  // namespace troupe::bench
