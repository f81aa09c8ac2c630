// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>

namespace troupe::engine {

/// So many passes run within each other on one stack; the next one gets a fresh stack.
constexpr std::uint32_t most_passes_on_a_stack = 60;

/// Calls `what` on a stack of its own, that of a new thread which goes on for this one, and waits for its end.
///   FS-1  it finds this thread's state: thread-local state of libtorch, grad mode, devices, streams, and the stack of passes.
///   FS-2  its warnings reach the handler of this thread, and what it throws comes out as it is, also where the handler throws.
/// No thread waits for another one's work, so there is nothing to deadlock on, however deep it goes.
void on_fresh_stack(const std::function<void()>& what);

}  // namespace troupe::engine
