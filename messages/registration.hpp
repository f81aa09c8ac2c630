// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include <caf/fwd.hpp>

#include <troupe/messages/caf_error.hpp>
#include <troupe/messages/inspect.hpp>

namespace troupe {

/// What `hello` says. Raised only when older nodes could misread a message; a new field of a header does not do that.
inline constexpr std::uint32_t protocol_version = 3;

/// Makes every message type and the error category known to a node's configuration, under names that stay.
/// Also silences libprotobuf, which would print a line for each bad message; the error says it all.
void add_message_types(caf::actor_system_config& config);

}  // namespace troupe
