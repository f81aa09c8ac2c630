// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "round_trips.hpp"

namespace troupe::bench {

/// A node of troupe that calls the nodes at these ports on loopback. The first port is the next node in the chain.
std::unique_ptr<round_trips> make_troupe_driver(const std::vector<std::uint16_t>& ports);

/// What another process runs, at `place` in the chain: tells its port and answers calls until `stop` can be read.
void serve_troupe(int place, const std::function<void(std::uint16_t)>& tell_port, int stop);

/// By how many KiB the resident memory grows from `few` to `many` contexts. The contexts are made one after another, each with
/// a call and a pass. Returns the growth of this process or of the process at `port`, whichever is larger.
double contexts_memory(std::uint16_t port, int few, int many);

/// The microseconds, per node, of a forward and backward that goes through `count` nodes in this process one by one.
double cost_of_nodes(int count, int runs);

}  // namespace troupe::bench
