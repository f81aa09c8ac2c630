// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "simulation/simulated_network.hpp"

namespace troupe::bench {

using simulation::network_costs;

/// What membership costs in a cluster whose nodes know each other and share no work.
struct membership_figures {
  std::size_t nodes = 0;
  double messages = 0;          // that a node sends in a second; meanwhile one node joins and one ends
  double busiest_messages = 0;  // of the node that sends the most
  double bytes = 0;             // that a node sends in a second
  double cpu_share = 0;         // of a node's CPU
  double join_s = 0;            // until all know a node that has joined
  double crash_s = 0;           // until all know that a node's process has ended
  double freeze_s = 0;          // until all know that a node is frozen
  double bytes_of_memory = 0;   // of the table of one node
};

using progress = std::function<void(const std::string&)>;

/// Lets a simulated cluster run for some seconds. What does not become known within a minute counts as a minute.
membership_figures simulate_membership(std::size_t nodes, const network_costs& costs, std::uint64_t seed, const progress& tell);

/// The memory of the table of one node that knows `nodes` members.
double memory_of_a_table(std::size_t nodes);

}  // namespace troupe::bench
