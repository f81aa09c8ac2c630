// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <troupe/actors/node.hpp>

namespace troupe::apps {

/// Registers the module types that `troupe train` creates on a node.
void add_charlm_modules(node& here);

}  // namespace troupe::apps
