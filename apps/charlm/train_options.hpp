// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "apps/charlm/recipe.hpp"
#include "apps/charlm/text.hpp"

#include <troupe/actors/settings.hpp>

namespace troupe::apps::charlm {

struct train_options {
  std::string data = licence_folder;
  std::string out = "out/charlm";
  bool resume = false;
  bool overwrite = false;  // an earlier run in the folder is removed, not set aside
  model_shape shape;
  recipe how;
  std::int64_t stages = 2;
  std::string schedule = "dataflow";  // as in schedule_named()
  std::string wire = "exact";         // how activations and gradients travel, as in wire_format_named()
  std::string device = "cpu";         // device of its node on which each stage computes
  double seconds = 90;                // length of the training, if steps is 0
  std::int64_t steps = 0;
  std::int64_t checkpoint_every = 100;  // steps
  // The folder in which each node writes its parts of checkpoints. If the nodes run already, it is a path below the data folder
  // of each node. Empty: the driver writes all parts.
  std::string node_checkpoints;
  std::int64_t validate_every = 50;  // steps
  std::int64_t verify_steps = 3;
  double single_process_seconds = 6;
  std::int64_t sample = 300;       // characters
  std::string cluster;             // path of a cluster file with the running nodes that hold the stages
  std::string join;                // "host:port" of a running node whose cluster holds the stages
  std::vector<std::string> nodes;  // which nodes of that cluster hold the stages, in order; empty: all, in order of names
  settings driver;                 // of this node; processes that it starts get the same log and heartbeat options
  double deadline = 60;            // deadline of calls and passes, in seconds
  std::int64_t retry = 0;          // how often the run may wait for stages that are away and go on from its last checkpoint
  std::int64_t retry_wait = 600;   // how long the run waits each time for the stages to be up, in seconds
  bool trace = true;
  std::int64_t profile_steps = 1;  // how many steps after the verified ones have their operators in the trace

  train_options() { driver.name.clear(); }  // empty: the name in the driver's kit, or "driver"

  /// Whether this program starts the processes of the stages itself.
  bool starts_stages() const { return cluster.empty() && join.empty(); }

  /// The names, without dashes, of the options that were given. If a run is continued, the other options come from its
  /// checkpoint.
  std::set<std::string> given;
};

}  // namespace troupe::apps::charlm
