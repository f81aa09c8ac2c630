// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <chrono>

namespace troupe::apps::probe {

/// The module type of probes.
inline constexpr auto type = "probe";

/// How long a probe waits for a node if its own node has not met that node yet, or if that node is gone.
inline constexpr std::chrono::seconds time_to_find{2};

/// The shortest and the longest measurement that a probe makes. If a call asks for a length outside of this range, the nearer
/// limit is used.
inline constexpr std::chrono::duration<double> shortest{0.01};
inline constexpr std::chrono::duration<double> longest{600};
/// The length within these limits. Another node chose the length, so it may be any number.
inline std::chrono::duration<double> within(std::chrono::duration<double> length) {
  return length > shortest ? std::min(length, longest) : shortest;
}

}  // namespace troupe::apps::probe
