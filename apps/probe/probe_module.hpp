// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/apps/bench_command_test.cpp
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include <troupe/actors/node.hpp>

namespace troupe::apps::probe {

/// The module type that `troupe bench` creates on each node. Methods:
///   "echo"     returns the tensors of the call
///   "take"     returns nothing
///   "twice"    returns the tensor times two
///   "measure"  calls measure() for the node `peer` and about `seconds` seconds; returns the values of the `link`
///   "compute"  measures products of matrices with this node's threads for about `seconds` seconds; returns `gigaflops`
inline constexpr auto type = "probe";

/// How long the method "measure" waits for the node `peer` if this node has not met that node yet, or if that node is gone.
inline constexpr std::chrono::seconds time_to_find{2};

void add_type(node& here);

/// The figures that were measured from one node to another.
struct link {
  std::int64_t calls = 0;   // how many small calls were measured, one after the other
  double call_us = 0;       // median time of a small call and its answer
  double call_p99_us = 0;   // 99 of 100 calls take at most this time; 0 if there were fewer than 100
  double call_p999_us = 0;  // 999 of 1,000 calls take at most this time; 0 if there were fewer than 1,000
  double mib_per_s = 0;     // rate of tensors of 4 MiB in one direction, with four calls at once
  double pass_us = 0;       // median time of a context with one call and a backward pass
};

/// The shortest and the longest measurement that a probe makes. If a call asks for a length outside of this range, the nearer
/// limit is used.
inline constexpr std::chrono::duration<double> shortest{0.01};
inline constexpr std::chrono::duration<double> longest{600};

/// Creates a probe on the peer, and measures calls and passes from `here` to it for about `length`. Throws troupe::error, also
/// if the peer does not have the module type.
link measure(node& here, const peer& to, std::chrono::duration<double> length);

/// Convert a `link` to the values in the reply of "measure", and back.
attributes values_of(const link& from);
link link_of(const attributes& values);

/// Returns the smallest value that at least `share` (0 to 1) of the values do not exceed. Pre: there is a value.
double percentile(std::vector<double> values, double share);

}  // namespace troupe::apps::probe
