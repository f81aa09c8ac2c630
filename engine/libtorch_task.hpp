// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <vector>

#include <troupe/engine/plan.hpp>

namespace troupe::engine {

/// Calls `what` inside a graph task of libtorch's that knows which functions of the plan execute, so that libtorch's own
/// functions do not compute outputs which nothing takes. `what` returns whether the pass is over. Costs a few microseconds.
///   LT-1  `what` is called once, and what it throws comes out as it is.
///   LT-2  the stack of passes is that of the caller, also where libtorch goes on at another thread.
///   LT-3  where libtorch's engine cannot run, as in a child of a process that had threads of it or under compiled autograd,
///         `what` is called all the same.
///   LT-4  callbacks that were queued with libtorch's own queue_callback() run once `what` has returned true. Where `what`
///         returns false, they are returned, to be run when the pass is over. Where `what` throws, they never run.
///   LT-5  the task is one of libtorch's default engine, as libtorch's own passes are: libtorch starts threads for one engine
///         of a process only.
std::vector<std::function<void()>> inside_libtorch_task(const plan& graph, bool keep_graph, bool create_graph,
                                                        const std::function<bool()>& what);

}  // namespace troupe::engine
