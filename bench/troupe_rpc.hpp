// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "round_trips.hpp"

namespace troupe::bench {

/// A node of ours that calls the one at `port` on loopback.
std::unique_ptr<round_trips> make_troupe_driver(std::uint16_t port);

/// The other process: tells its port and answers calls until `stop` can be read.
void serve_troupe(const std::function<void(std::uint16_t)>& tell_port, int stop);

}  // namespace troupe::bench
