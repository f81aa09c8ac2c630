// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/apps/bench_command_test.cpp, tests/hosts/cluster_bench_test.cpp
#pragma once

namespace CLI {
class App;
}

namespace troupe::apps {

/// `troupe bench --cluster FILE` or `--join HOST:PORT`: measures what the nodes of a running cluster and the ways between them give,
/// one after the other.
///   BM-1  a node or way that can't be measured is told with its reason, the others are measured, and the exit status is 1.
void add_bench_command(CLI::App& app);

}  // namespace troupe::apps
