// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <caf/atom.hpp>

namespace troupe {

using join_atom = caf::atom_constant<caf::atom("join")>;
using find_atom = caf::atom_constant<caf::atom("find")>;
using list_atom = caf::atom_constant<caf::atom("list")>;
using subscribe_atom = caf::atom_constant<caf::atom("subscribe")>;
using leave_atom = caf::atom_constant<caf::atom("leave")>;
using clock_atom = caf::atom_constant<caf::atom("clock")>;
using tick_atom = caf::atom_constant<caf::atom("tick")>;

}  // namespace troupe
