// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include "apps/charlm/run_state.hpp"
#include "apps/charlm/train_options.hpp"

namespace troupe::apps::charlm {

/// What a new run's options come to; the text is not read yet.
run_state planned_state(const train_options& options);

/// The state in a checkpoint. Options that were given have to agree with it, but for how long to train, or std::runtime_error
/// says which does not.
run_state continued_state(const train_options& options, const std::string& checkpoint_folder);

}  // namespace troupe::apps::charlm
