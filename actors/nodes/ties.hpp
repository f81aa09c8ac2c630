// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <troupe/actors/nodes/node_parts.hpp>

namespace troupe::nodes {

/// Whether something that stays ties this node and the peer together: an open context that both hold a part of, an object of
/// one of the two that the other one owns, or a loan from or to the peer. Any thread may call it.
bool share_context_or_object(const node_parts& parts, node_id peer);

}  // namespace troupe::nodes
