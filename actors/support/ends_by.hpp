// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/support/ends_by_test.cpp
#pragma once

#include <chrono>
#include <functional>

namespace troupe::support {

/// Runs `work` on a thread of its own and waits for its end, until `until` at most. Returns whether the work has ended. Work
/// that has not ended goes on. So `work` has to own all that it uses. `work` is destroyed on its thread. Runs `work` on this
/// thread, without a limit, if the system gives no thread. `work` must not throw.
bool ends_by(std::chrono::steady_clock::time_point until, std::function<void()> work);

}  // namespace troupe::support
