// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/devices/streams_test.cpp, tests/devices/device_workers_test.cpp
#pragma once

#include <string>

#include <c10/util/Exception.h>
#include <c10/util/StringUtil.h>
#include <torch/csrc/autograd/function.h>

#include <troupe/messages/ids.hpp>

namespace troupe::engine {

/// Return ids as text, for the engine's error messages. The engine does not link to_string() of messages/ids.hpp.
inline std::string describe(const message_id& id) { return c10::str(id.number, " of node ", std::hex, id.node.value); }
inline std::string describe(const context_id& id) { return c10::str(id.number, " of node ", std::hex, id.node.value); }

/// Adds to the error the name of the function that failed, and the devices of the function's incoming and outgoing gradients.
/// In nested passes only the innermost pass adds its function.
void add_failed_function(c10::Error& to, const torch::autograd::Node& failed);

}  // namespace troupe::engine
