// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/devices/streams_test.cpp, tests/devices/device_workers_test.cpp
#pragma once

#include <c10/util/Exception.h>
#include <torch/csrc/autograd/function.h>

namespace troupe::engine {

/// Adds to the error the function that failed and the devices of the function's gradients, in and out. Of nested passes, the innermost
/// adds its function, and the others add nothing.
void add_place(c10::Error& to, const torch::autograd::Node& failed);

}  // namespace troupe::engine
