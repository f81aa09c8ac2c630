// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/python/rpc/agent_test.py
#pragma once

#include <optional>
#include <utility>

#include <troupe/actors/function_table.hpp>
#include <troupe/actors/future.hpp>

namespace troupe::calls {

/// Lets a function return before its result exists.
///   LY-1  after answer_later(), what the function returns does not count: the call is answered with the value or the error of
///         `result`, once complete. The worker of the call is free meanwhile.
/// To be called by the function, on the thread that runs the call. Pre: `result` is complete before the node ends, and its
/// tensors need no graph.
void answer_later(future<call_reply> result);

}  // namespace troupe::calls
