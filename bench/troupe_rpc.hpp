// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "round_trips.hpp"

namespace troupe::bench {

/// A node of ours that calls those at these ports on loopback, the first of which is the next in the chain.
std::unique_ptr<round_trips> make_troupe_driver(const std::vector<std::uint16_t>& ports);

/// Another process, at `place` in the chain: tells its port and answers calls until `stop` can be read.
void serve_troupe(int place, const std::function<void(std::uint16_t)>& tell_port, int stop);

/// KiB by which the resident memory of the process at `port`, or of this one if that is more, grows from `few` to `many`
/// contexts, one after another, each with a call and a pass.
double contexts_memory(std::uint16_t port, int few, int many);

/// Microseconds for each of `count` nodes in this process that a forward and backward takes which goes through them one by one.
double cost_of_nodes(int count, int runs);

}  // namespace troupe::bench
