// SPDX-License-Identifier: BSD-3-Clause
#include "apps/charlm/modules.hpp"

#include "apps/charlm/stage_module.hpp"

namespace troupe::apps {

void add_charlm_modules(node& here) { charlm::add_stage_type(here); }

}  // namespace troupe::apps
