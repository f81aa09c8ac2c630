// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/support/activity_test.cpp, tests/actors/support/process_memory_test.cpp
#pragma once

#include <atomic>
#include <cstdint>

#include <troupe/messages/messages.hpp>

namespace troupe::support {

/// Counts the work of a node: the work that runs now, and the work that is done. Any thread may use the counts.
///   AC-1  the counts of running work (contexts, passes_running, graph_tasks, calls_waiting, calls_running) are zero again once
///         the work is over, however it ended.
struct activity {
  using count = std::atomic<std::uint64_t>;

  count contexts{0};
  count contexts_opened{0};
  count passes_running{0};
  count passes_completed{0};
  count passes_failed{0};
  count graph_tasks{0};
  count calls_made{0};
  count calls_waiting{0};
  count calls_failed{0};
  count calls_run{0};
  count calls_running{0};
  count functions_run{0};
  count connections_refused{0};
  count requests_refused{0};

  void fill(node_status& status) const noexcept {
    status.contexts = contexts;
    status.contexts_opened = contexts_opened;
    status.passes_running = passes_running;
    status.passes_completed = passes_completed;
    status.passes_failed = passes_failed;
    status.graph_tasks = graph_tasks;
    status.calls_made = calls_made;
    status.calls_waiting = calls_waiting;
    status.calls_failed = calls_failed;
    status.calls_run = calls_run;
    status.calls_running = calls_running;
    status.functions_run = functions_run;
    status.connections_refused = connections_refused;
    status.requests_refused = requests_refused;
  }

  void pass_ended(bool succeeded) noexcept {
    --passes_running;
    ++(succeeded ? passes_completed : passes_failed);
  }
};

/// The memory of this process that is in RAM, in bytes; 0 if the system does not tell.
std::uint64_t resident_bytes() noexcept;

}  // namespace troupe::support
