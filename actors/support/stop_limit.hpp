// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/support/stop_limit_test.cpp
#pragma once

#include <chrono>
#include <functional>

namespace troupe::support {

/// For how long the end of a node or of a team waits for functions that run: the seconds that TORCH_AUTOGRAD_SHUTDOWN_WAIT_LIMIT says, as for
/// the threads of libtorch's engine; 10 s without this environment variable. Throws troupe::error (misuse) if the variable is no number
/// from 0 to 86,400.
std::chrono::milliseconds stop_limit_of_environment();

/// Runs `work` on a thread of its own and waits for its end, until `until` at most. Returns whether the work has ended. Work that has not
/// ended goes on; it has to own all that it uses, and is destroyed on its thread. Runs `work` on this thread, without a limit, if the system
/// gives no thread. `work` must not throw.
bool ends_by(std::chrono::steady_clock::time_point until, std::function<void()> work);

}  // namespace troupe::support
