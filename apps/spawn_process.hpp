// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/apps/process_group_test.cpp
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace troupe::apps {

/// Starts a child process that keeps the promises PG-1 to PG-3 of process_group. Returns the number of the process. The kernel
/// kills the child when the calling *thread* ends, so that thread has to live as long as the child should. `output` becomes the
/// child's stdout, `errors` its stderr; -1: the child uses that of this process. `input` becomes its stdin; -1: an empty stdin.
/// Throws std::system_error if the program cannot be started.
pid_t spawn_process(const std::vector<std::string>& arguments, int output, int errors, int input);

}  // namespace troupe::apps
