// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/charlm/run_state.hpp"
#include "apps/charlm/schedule.hpp"
#include "apps/charlm/single_process.hpp"

namespace troupe::apps::charlm {

struct run_summary {
  double validation_loss = 0;  // nats per character
  double trigram_loss = 0;
  // The speed of the training steps. Verified steps, validations and checkpoints do not count. 0: no step counts (in JSON:
  // null).
  double tokens_per_second = 0;
  single_process_speed single_process;
  work_times work;                      // of those steps, as in step_result; without a span (in JSON: null) for dataflow
  std::vector<std::int64_t> most_held;  // likewise
  std::int64_t verified_steps = 0;
  std::int64_t verified_parameters = 0;
  double seconds = 0;  // time from start to end

  std::string to_json(const run_state& of) const;

  struct paths_of_run {
    std::string folder;
    std::vector<std::string> files;  // names of the files in the folder
    std::string generate;            // the command that generates more text
  };
  std::vector<std::string> lines(const run_state& of, const std::string& sample, const paths_of_run& paths) const;
};

}  // namespace troupe::apps::charlm
