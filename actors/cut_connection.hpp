// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <caf/fwd.hpp>

namespace troupe {

/// Ends the connection to that actor system, if there is one, with all that waits to leave on it: both ends find that it is over.
/// Of actors in the network thread, or of a system without one.
void cut_connection(caf::actor_system& system, const caf::node_id& to);

}  // namespace troupe
