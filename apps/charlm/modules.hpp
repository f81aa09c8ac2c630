// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/apps/charlm/training_test.cpp, tests/apps/train_test.cpp
#pragma once

#include <troupe/actors/node.hpp>

namespace troupe::apps {

/// Registers the module types that `troupe train` creates on a node.
void add_charlm_modules(node& here);

}  // namespace troupe::apps
