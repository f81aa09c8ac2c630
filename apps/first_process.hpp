// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/apps/node_command_test.cpp
#pragma once

namespace troupe::apps {

/// To be called first in main, before any thread exists. As process 1 of a container, this function goes on in a child. Process 1
/// itself only does what the kernel expects of it, and never returns from here. Elsewhere the function does nothing.
///   FP-1  process 1 reaps every process of the container whose parent has ended, so that no zombie stays.
///   FP-2  process 1 passes signals on, and ends as the child does: with its exit status, or 128 + the signal that has ended the child.
void leave_first_process();

}  // namespace troupe::apps
