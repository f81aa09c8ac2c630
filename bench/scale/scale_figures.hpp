// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "../support/bench_program.hpp"
#include "simulation/soak.hpp"

namespace troupe::bench {

using namespace simulation;

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

/// What one simulated pass cost.
struct pass_figures {
  std::string shape;
  std::size_t nodes = 0;
  double time_ms = 0;
  std::size_t busiest = 0;             // the node with the most messages
  std::uint64_t busiest_messages = 0;  // sent and received
  double busiest_cpu_ms = 0;           // of messages, without functions
  double messages = 0;                 // of a node, on the average
  std::uint64_t largest_weight = 0;    // bytes
  std::uint64_t largest_received = 0;  // bytes that came to one node
};

/// One pass over the shape. Throws std::runtime_error if the pass fails.
pass_figures simulate_pass(const std::string& shape, std::size_t nodes, const network_costs& network, const pass_costs& costs,
                           std::uint64_t seed);

/// A simulated pass beside a real one.
struct compared_pass {
  std::string shape;
  std::size_t nodes = 0;
  double real_ms = 0;
  double simulated_ms = 0;
  /// The larger one of the two by the smaller one.
  double error() const { return std::max(real_ms / simulated_ms, simulated_ms / real_ms); }
};

/// What is asked for.
struct scale_effort {
  bool quick = false;
  std::uint64_t seed = 1;
  std::vector<std::size_t> nodes{100, 1'000, 10'000};
  std::vector<std::string> shapes = shape_names();
  network_costs network = network_costs::one_rack();
  pass_costs pass;
  double hours = 1'000;     // of the soak
  double hours_a_seed = 2;  // each seed is one cluster
  std::size_t threads = 1;  // that run clusters of the soak
  progress tell;
};

/// Simulates what the rows and the tables ask for, each of it once.
///   FG-1  what is asked for again is not simulated again.
class scale_figures {
 public:
  explicit scale_figures(scale_effort how) : how_(std::move(how)) {}

  const scale_effort& how() const noexcept { return how_; }
  const pass_figures& pass(const std::string& shape, std::size_t nodes);
  const membership_figures& membership(std::size_t nodes);
  /// Why a pass of this size is not simulated; empty if it is.
  static std::string too_large(const std::string& shape, std::size_t nodes);
  /// Runs clusters until they have run for enough hours together, or until a promise is broken.
  const soak_report& soaked();

  /// Passes over all shapes in 2 to 16 processes, and the same passes simulated. How long a function sleeps and what a message takes is
  /// measured with a pipeline of two processes; all else is predicted. To be called before this process has other threads.
  const std::vector<compared_pass>& compared();

  /// What was simulated so far.
  const std::map<std::pair<std::string, std::size_t>, pass_figures>& passes() const noexcept { return passes_; }
  const std::map<std::size_t, membership_figures>& memberships() const noexcept { return memberships_; }

  /// Tables of what was simulated so far, for people and as JSON.
  std::string text() const;
  std::string json() const;

 private:
  scale_effort how_;
  std::map<std::pair<std::string, std::size_t>, pass_figures> passes_;
  std::map<std::size_t, membership_figures> memberships_;
  soak_report soaked_;
  std::vector<compared_pass> compared_;
  network_costs network_of_comparison_;
  pass_costs costs_of_comparison_;
};

/// A row of scale_model before it is measured.
struct scale_row {
  std::string name;
  std::string unit;
  bar should_be;
  std::string text;  // what the row measures, in one plain sentence
  row (*measure)(scale_figures& from);
};

/// All rows, in their order.
std::vector<scale_row> scale_rows();

/// Curves over the count of nodes: time, messages at the busiest node and weight in a message of a pass by shape, and what membership costs. Plots of what
/// was not simulated are left out.
std::vector<plot> plots_of(const scale_figures& from);

}  // namespace troupe::bench
