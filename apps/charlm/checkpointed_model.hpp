// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/apps/train_test.cpp
#pragma once

#include <memory>
#include <string>

#include "apps/charlm/run_state.hpp"
#include "apps/charlm/vocabulary.hpp"

namespace troupe::apps::charlm {

class whole_model;

/// All stages of a checkpoint in this process.
struct checkpointed_model {
  run_state state;
  vocabulary words;
  std::shared_ptr<whole_model> model;

  /// Reads the checkpoint in the folder of a run. Throws if the checkpoint is missing, is damaged, or was written by another
  /// program.
  static checkpointed_model read(const std::string& folder);
};

}  // namespace troupe::apps::charlm
