// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <troupe/actors/support/owned_descriptor.hpp>

namespace troupe::apps::charlm {

struct step_metrics {
  std::int64_t step = 0;  // from 1
  double loss = 0;        // nats per character
  double learning_rate = 0;
  double gradient_norm = 0;  // before clipping
  double tokens_per_second = 0;
  double seconds = 0;  // since the start of the run
};

/// The losses of a run, kept in memory and in a file with one JSON object per line.
///   MX-1  each line is written at once, with one call, so another process never reads half a line. If there is no space for a
///         line, the file stays as it was.
///   MX-2  a run that continues from a step removes the lines of later steps.
///   MX-3  a line that cannot be written throws std::runtime_error with the file and the reason.
class metrics {
 public:
  using points = std::vector<std::pair<double, double>>;

  /// `last_step`: the step that a run continues from; -1 starts a new file.
  metrics(std::string path, std::int64_t last_step);

  void add(const step_metrics& step);
  void add_validation(std::int64_t step, double loss, double seconds);

  /// Pairs of step and loss, in the order of the steps.
  const points& losses() const noexcept { return losses_; }
  const points& validation_losses() const noexcept { return validation_losses_; }

 private:
  void write(const std::string& line);

  std::string path_;
  support::owned_descriptor descriptor_;
  points losses_;
  points validation_losses_;
};

/// Returns a chart, as SVG, of the training losses and the validation losses, with the trigram model's loss as a horizontal
/// line.
std::string loss_chart(const metrics& of, double trigram_loss);

}  // namespace troupe::apps::charlm
