// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "programs.hpp"

namespace troupe::bench::savina {

/// What runs programs.
struct runner_system {
  std::string name;  // "work stealing"
  /// Whether it runs the program.
  std::function<bool(const program&, const values&)> runs;
  /// Seconds of so many rounds after one that does not count; with the parameter `trips`, microseconds of each message and its answer
  /// instead. `threads`: of the scheduler. Throws std::runtime_error if a result is wrong.
  std::function<std::vector<double>(const program&, const values&, int rounds, std::size_t threads)> measure;
};

/// CAF's own policies, of which each program runs with both.
runner_system stealing();
runner_system sharing();
/// CAF as a troupe node sets it up.
runner_system of_a_node();
/// CAF's actors with a thread each, and threads with queues. Only for programs of at most `most_threads` actors.
runner_system detached();
runner_system plain_threads();
/// CAF's brokers, which share the thread of the network. Only for message_programs().
runner_system brokers();
/// Erlang/OTP. Runs nothing where there is no `erl`.
runner_system erlang();
/// Pykka's actors, which are threads of Python. Runs a few programs, and nothing where `make bench-savina` has not installed it.
runner_system pykka();

}  // namespace troupe::bench::savina
