// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/apps/bench_command_test.cpp
#pragma once

#include <chrono>
#include <cstdint>
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

/// For how long this node looks for a node that it does not know: one that it has not met yet, or one that is gone.
inline constexpr std::chrono::seconds time_to_find{2};

void add_type(node& here);

/// The figures of the way from one node to another.
struct link {
  std::int64_t calls = 0;   // small calls that were measured, one after the other
  double call_us = 0;       // a small call and its answer: the median
  double call_p99_us = 0;   // 99 of 100 calls take at most this time; 0 if there were fewer than 100
  double call_p999_us = 0;  // 999 of 1,000 calls take at most this time; 0 if there were fewer than 1,000
  double mib_per_s = 0;     // of tensors of 4 MiB in one direction, four calls at once
  double pass_us = 0;       // a context with one call and a backward pass: the median
};

/// The least and the most that measure() takes for `length`. Any other length is set to the nearer of the two.
inline constexpr std::chrono::duration<double> shortest{0.01};
inline constexpr std::chrono::duration<double> longest{600};

/// Measures for about `length`. Creates a probe on the peer. Throws troupe::error, also if the peer has no such type.
link measure(node& here, const peer& to, std::chrono::duration<double> length);

/// A `link` as the values in the reply of "measure", and back.
attributes values_of(const link& from);
link link_of(const attributes& values);

/// The smallest value that `share` (0 to 1) of the values do not exceed. Pre: there is a value.
double percentile(std::vector<double> values, double share);

}  // namespace troupe::apps::probe
