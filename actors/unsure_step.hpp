// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/optimizer_steps_test.cpp
#pragma once

#include <troupe/messages/errors.hpp>

namespace troupe {

/// A step of an optimizer (or a load) was made on some nodes and not on others, or nobody knows. code() is that of the cause
/// (peer_down, deadline_passed ...), or misuse where what happened is known. What to do: optimizer.hpp, OM-7.
struct unsure_step : error {
  using error::error;
};

}  // namespace troupe
