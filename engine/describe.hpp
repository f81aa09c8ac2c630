// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include <c10/util/StringUtil.h>

#include <troupe/messages/ids.hpp>

/// Ids as text, for the engine's error messages. The messages room has longer texts, but the engine does not link that room.
namespace troupe::engine {

inline std::string describe(const message_id& id) { return c10::str(id.number, " of node ", std::hex, id.node.value); }
inline std::string describe(const context_id& id) { return c10::str(id.number, " of node ", std::hex, id.node.value); }

}  // namespace troupe::engine
