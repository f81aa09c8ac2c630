// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/engine/nested_test.cpp, tests/engine/state_test.cpp, tests/engine/drop_in/one_engine_test.cpp
#pragma once

#include <functional>
#include <vector>

#include <troupe/engine/plan.hpp>

namespace troupe::engine {

/// Calls `what` inside a graph task of libtorch that knows which functions of the plan execute. libtorch's own functions then
/// do not compute outputs that the pass does not use. Without a plan, the functions compute all outputs. `what` returns true if
/// the pass is over. The call costs a few microseconds.
///   LT-1  `what` is called once. An exception of `what` is rethrown unchanged.
///   LT-2  the stack of passes and the surroundings (surroundings.hpp) are the caller's, even if libtorch continues on another
///         thread.
///   LT-3  if libtorch's engine cannot run, `what` is called without that engine. libtorch's engine cannot run under compiled
///         autograd, and in a forked child of a process that had engine threads.
///   LT-4  callbacks that were queued with libtorch's own queue_callback() run after `what` has returned true. If `what`
///         returns false, the callbacks are returned, and the caller runs them when the pass is over. If `what` throws, the
///         callbacks never run.
///   LT-5  the graph task belongs to libtorch's default engine (Engine::get_default_engine()), because libtorch starts threads
///         for only one engine in a process.
///   LT-6  libtorch's Engine::is_checkpoint_valid() returns false within `what`, with a plan and without.
std::vector<std::function<void()>> inside_libtorch_task(const plan* graph, bool keep_graph, bool create_graph,
                                                        const std::function<bool()>& what);

}  // namespace troupe::engine
