// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/optimizer_steps_test.cpp
#pragma once

#include <troupe/messages/errors.hpp>

namespace troupe {

/// The error of a step (or a load) of an optimizer that some nodes have made and others not, or whose outcome is unknown.
/// code() is the code of the cause (peer_down, deadline_passed ...), or misuse if the outcome is known. For what to do see OM-7
/// in optimizer.hpp.
struct unsure_step : error {
  using error::error;
};

}  // namespace troupe
