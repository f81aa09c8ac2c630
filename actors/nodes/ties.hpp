// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <troupe/actors/nodes/node_services.hpp>

namespace troupe::nodes {

/// Whether this node and the peer share an open context in which both take part, an object that lives on one of the two nodes
/// and belongs to the other, or a loan. Any thread may call share_context_or_object().
bool share_context_or_object(const node_services& services, node_id peer);

}  // namespace troupe::nodes
