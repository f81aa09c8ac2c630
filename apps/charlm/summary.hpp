// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/charlm/run_state.hpp"
#include "apps/charlm/single_process.hpp"

namespace troupe::apps::charlm {

/// What a run came to.
struct run_summary {
  double validation_loss = 0;  // nats a character
  double trigram_loss = 0;
  double tokens_per_second = 0;  // of the steps, without those that were verified, validations and checkpoints
  single_process_speed single_process;
  std::int64_t verified_steps = 0;
  std::int64_t verified_parameters = 0;
  double seconds = 0;  // from start to end

  /// summary.json
  std::string to_json(const run_state& of) const;

  /// Where a person finds what the run made.
  struct places {
    std::string folder;
    std::vector<std::string> files;  // in the folder
    std::string generate;            // the command for more text
  };
  /// For a person to read.
  std::vector<std::string> lines(const run_state& of, const std::string& sample, const places& paths) const;
};

}  // namespace troupe::apps::charlm
