// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/optimizer_steps_test.cpp
#pragma once

#include <troupe/messages/errors.hpp>

namespace troupe {

/// A step of an optimizer (or a load) was made on some nodes and not on others, or its outcome is not known. code() is that of
/// the cause (peer_down, deadline_passed ...), or misuse if the outcome is known. For what to do see OM-7 in optimizer.hpp.
struct unsure_step : error {
  using error::error;
};

}  // namespace troupe
