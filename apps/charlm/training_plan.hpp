// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/apps/train_test.cpp
#pragma once

#include <string>

#include "apps/charlm/run_state.hpp"
#include "apps/charlm/train_options.hpp"

namespace troupe::apps::charlm {

/// The state with which a new run begins, from its options. The text is not read here.
run_state planned_state(const train_options& options);

/// The state in a checkpoint. Options that were given have to agree with the checkpoint, except the length of the training. If
/// one does not agree, throws std::runtime_error that names it.
run_state continued_state(const train_options& options, const std::string& checkpoint_folder);

}  // namespace troupe::apps::charlm
