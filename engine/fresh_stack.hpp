// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/engine/nested_test.cpp
#pragma once

#include <cstdint>
#include <functional>

namespace troupe::engine {

/// The largest number of nested passes on one stack. The next nested pass gets a fresh stack.
constexpr std::uint32_t most_passes_on_a_stack = 60;

/// Calls `what` on a new thread, which has a fresh stack, and waits until `what` has ended.
///   FS-1  `what` finds the calling thread's state: thread-local state of libtorch, grad mode, devices, streams, the stack of
///         passes, and the surroundings (SR-1).
///   FS-2  warnings of `what` reach the warning handler of the calling thread. An exception of `what` is rethrown unchanged,
///         even if the warning handler throws too.
/// The new thread does the work of the calling thread alone and waits for no other thread, so nesting cannot deadlock at any
/// depth.
void on_fresh_stack(const std::function<void()>& what);

}  // namespace troupe::engine
