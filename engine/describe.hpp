// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/devices/streams_test.cpp, tests/devices/device_workers_test.cpp
#pragma once

#include <string>

#include <c10/util/Exception.h>
#include <c10/util/StringUtil.h>
#include <torch/csrc/autograd/function.h>

#include <troupe/messages/ids.hpp>

namespace troupe::engine {

/// Ids as text, for the engine's error messages. The messages room has longer texts, but the engine does not link that room.
inline std::string describe(const message_id& id) { return c10::str(id.number, " of node ", std::hex, id.node.value); }
inline std::string describe(const context_id& id) { return c10::str(id.number, " of node ", std::hex, id.node.value); }

/// Adds to the error the function that failed and the devices of the function's gradients, in and out. In nested passes only
/// the innermost pass adds its function.
void add_place(c10::Error& to, const torch::autograd::Node& failed);

}  // namespace troupe::engine
