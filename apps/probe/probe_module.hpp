// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/apps/bench_command_test.cpp
#pragma once

#include <chrono>
#include <vector>

#include <troupe/actors/node.hpp>

namespace troupe::apps::probe {

/// The module type that `troupe bench` creates on each node. Methods:
///   "echo"     the tensors of the call
///   "take"     nothing
///   "twice"    the tensor twice
///   "measure"  measures the way from this node to the node `peer`, for about `seconds` seconds: the values of a `link`
///   "compute"  measures products of matrices with this node's threads: `gigaflops`
inline constexpr auto type = "probe";

/// For how long a node is looked up that is not known, because it has not been met yet, or is gone.
inline constexpr std::chrono::seconds time_to_find{2};

/// Registers the type on a node.
void add_type(node& here);

/// What the way from one node to another gives.
struct link {
  double call_us = 0;      // a small call and its answer: the median
  double call_p99_us = 0;  // 99 of 100 calls are faster
  double call_p999_us = 0;
  double mib_per_s = 0;  // of tensors of 4 MiB, four calls at once
  double pass_us = 0;    // a context with one call and a backward pass: the median
};

/// Measures for about so long. Creates a probe on the peer. Throws troupe::error, also if the peer has no such type.
link measure(node& here, const peer& to, std::chrono::duration<double> length);

/// As the reply of "measure" has them.
attributes values_of(const link& from);
link link_of(const attributes& values);

/// The value below which `share` (0 to 1) of the values are. Pre: there is a value.
double percentile(std::vector<double> values, double share);

}  // namespace troupe::apps::probe
