// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include "curves.hpp"

namespace troupe::bench {

/// The value below which `share` (0 to 1) of the values are. Pre: there is a value.
double percentile(std::vector<double> values, double share);

/// A call of a message's size, over each carrier, beside a request of CAF and bare TCP.
plot call_by_size(bool quick);
/// The share of small calls that are over after a time.
plot call_percentiles(bool quick);
/// Tokens per second of the example by its stages, beside a single process and PyTorch's pipelining. `python`: as from
/// python_with_torch(); empty: without pipelining.
plot training_by_stages(const std::string& python, bool quick);

}  // namespace troupe::bench
