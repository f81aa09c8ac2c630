// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/apps/bench_command_test.cpp
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include <troupe/actors/node.hpp>

#include "apps/probe/limits.hpp"

namespace troupe::apps::probe {

/// Adds the module type that `troupe bench` creates on each node. Methods:
///   "echo"     returns the tensors of the call
///   "take"     returns nothing
///   "twice"    returns the tensor times two
///   "measure"  calls measure() for the node `peer` and about `seconds` seconds; returns the values of the `link`
///   "compute"  measures products of matrices with this node's threads for about `seconds` seconds; returns `gigaflops`
///   "savina"   see savina_actor, as for the other methods that begin so
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

/// Creates a probe on the peer, and measures calls and passes from `here` to it for about `length`. Throws troupe::error, also
/// if the peer does not have the module type.
link measure(node& here, const peer& to, std::chrono::duration<double> length);

/// Convert a `link` to the values in the reply of "measure", and back.
attributes values_of(const link& from);
link link_of(const attributes& values);

/// Returns the smallest value that at least `share` (0 to 1) of the values do not exceed. Pre: there is a value.
double percentile(std::vector<double> values, double share);

}  // namespace troupe::apps::probe
