// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <string>

#include <caf/actor_control_block.hpp>
#include <caf/node_id.hpp>

#include <troupe/actors/logging/node_log.hpp>
#include <troupe/actors/services/uses.hpp>
#include <troupe/actors/support/activity.hpp>

namespace troupe::services {

/// Counts and logs a message that the node has refused. `sender`: the actor that sent the message; null if it is not known. A
/// flood of one known node hides no line about another node (NL-3).
inline void note_refusal(uses<with_log, with_counts> here, const std::string& why, const caf::strong_actor_ptr& sender) {
  ++here.counts.requests_refused;
  here.log.warn(
    "nodes", [&] { return "refused a message: " + why; },
    [&] { return sender ? std::hash<caf::node_id>()(sender->node()) : 0; });
}

}  // namespace troupe::services
