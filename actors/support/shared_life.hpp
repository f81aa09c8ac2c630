// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <caf/actor.hpp>
#include <caf/exit_reason.hpp>
#include <caf/scheduled_actor.hpp>

namespace troupe::support {

/// Ends the actor when `other` ends, or now if `other` is empty. The spawner passes `other` as an argument. A lazy actor runs for the
/// first time when its first message comes: a look-up by the actor itself could come after `other` has ended.
inline void live_as_long_as(caf::scheduled_actor* self, const caf::actor& other) {
  if (other)
    self->link_to(other);
  else
    self->quit(caf::exit_reason::user_shutdown);
}

}  // namespace troupe::support
