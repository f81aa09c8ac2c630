// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <caf/atom.hpp>

namespace troupe::support {

using join_atom = caf::atom_constant<caf::atom("join")>;
using find_atom = caf::atom_constant<caf::atom("find")>;
using list_atom = caf::atom_constant<caf::atom("list")>;
using subscribe_atom = caf::atom_constant<caf::atom("subscribe")>;
using leave_atom = caf::atom_constant<caf::atom("leave")>;
using clock_atom = caf::atom_constant<caf::atom("clock")>;
using gradients_atom = caf::atom_constant<caf::atom("gradients")>;
using start_atom = caf::atom_constant<caf::atom("start")>;
using done_atom = caf::atom_constant<caf::atom("done")>;
using close_atom = caf::atom_constant<caf::atom("close")>;
using free_atom = caf::atom_constant<caf::atom("free")>;
using arrived_atom = caf::atom_constant<caf::atom("arrived")>;
using blocked_atom = caf::atom_constant<caf::atom("blocked")>;
using resumed_atom = caf::atom_constant<caf::atom("resumed")>;
using deadline_atom = caf::atom_constant<caf::atom("deadline")>;
using tick_atom = caf::atom_constant<caf::atom("tick")>;
using listen_atom = caf::atom_constant<caf::atom("listen")>;
using capacity_atom = caf::atom_constant<caf::atom("capacity")>;
using status_atom = caf::atom_constant<caf::atom("status")>;
using outline_atom = caf::atom_constant<caf::atom("outline")>;
using collect_atom = caf::atom_constant<caf::atom("collect")>;

}  // namespace troupe::support
