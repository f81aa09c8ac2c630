// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include <caf/fwd.hpp>

#include <troupe/messages/caf_error.hpp>
#include <troupe/messages/inspect.hpp>

namespace troupe {

/// The protocol version in `hello`. The version rises only when older nodes could misread a message. A new field of a header is
/// no reason to raise the version.
inline constexpr std::uint32_t protocol_version = 7;

/// Registers every message type and the error category in a node's configuration, under names that never change. Also silences
/// libprotobuf, which would print a line for each bad message. The error for such a message has all information.
void add_message_types(caf::actor_system_config& config);

}  // namespace troupe
