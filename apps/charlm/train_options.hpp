// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "apps/charlm/model_shape.hpp"
#include "apps/charlm/recipe.hpp"
#include "apps/charlm/text.hpp"

namespace troupe::apps::charlm {

/// What `troupe train` is asked for.
struct train_options {
  std::string data = licence_folder;
  std::string out = "out/charlm";
  bool resume = false;
  model_shape shape;
  recipe how;
  std::int64_t stages = 2;
  double seconds = 90;  // of training, if steps is 0
  std::int64_t steps = 0;
  std::int64_t checkpoint_every = 100;  // steps
  std::int64_t validate_every = 50;     // steps
  std::int64_t verify_steps = 3;
  double single_process_seconds = 6;
  std::int64_t sample = 300;  // characters
  std::string cluster;        // file; empty: processes of our own
  std::uint16_t port = 0;     // of the driver
  double deadline = 60;       // of calls and passes, in seconds
  bool trace = true;
  std::int64_t profile_steps = 1;  // after the verified ones: the trace shows their operators on all nodes

  /// Options that were given, by their names without dashes. What was not comes from the checkpoint of a run that is continued.
  std::set<std::string> given;
};

}  // namespace troupe::apps::charlm
