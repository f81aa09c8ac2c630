// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include "../support/curves.hpp"
#include "exchanges.hpp"

namespace troupe::bench {

/// The median of the runs, and the middle half of them.
point point_of(double x, const std::vector<double>& runs);
/// The times that all but one of so many runs keep, for each of `one_of`.
std::vector<double> late_ones(const std::vector<double>& times, const std::vector<double>& one_of);
/// The curve of turns that have returned late_ones().
curve curve_of_late_ones(const std::string& name, role part, const turns_of_part& found, const std::vector<double>& one_of);

/// A call of a message's size, over each carrier, beside a request of CAF and bare TCP.
plot call_by_size(bool quick);
/// Copies, shared memory and TCP by the size of a message, beside a call.
plot floors_by_size(bool quick);
/// Small calls a second by how many are under way.
plot calls_at_once(bool quick);
/// The share of small calls that are over after a time.
plot call_percentiles(bool quick);
/// Tokens per second of the example by its stages, beside a single process and PyTorch's pipelining. `python`: as from
/// python_with_torch(); empty: without pipelining.
plot training_by_stages(const std::string& python, bool quick);

}  // namespace troupe::bench
