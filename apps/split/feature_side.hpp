// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/apps/split_learning_test.cpp, tests/hosts/split_learning_test.cpp
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <troupe/actors/node.hpp>

#include "apps/split/cut.hpp"
#include "apps/split/halves.hpp"
#include "apps/split/table.hpp"

namespace troupe::apps::split {

/// The parameters with which both parties train. The batches of an epoch are parts of a permutation of the rows, which depends
/// on `batch_seed` and the epoch.
struct training_parameters {
  std::int64_t epochs = 10;
  std::int64_t batch = 64;
  double rate = 0.1;
  std::optional<std::uint64_t> seed;        // seed of the initial weights; see normal_numbers
  std::optional<std::uint64_t> noise_seed;  // seed of the noise
  std::uint64_t batch_seed = 1;             // seed of the batches; not secret: the other party sees the batches
  cut_options how = {};
};

/// Returns the row numbers of each batch of an epoch. Rows are numbered from 0.
std::vector<at::Tensor> batches_of(std::int64_t rows, std::int64_t epoch, const training_parameters& how);

struct failed_step {
  std::int64_t step = 0;
  int attempt = 0;
  std::string reason;
};

/// The party with the features. It trains its half of the model together with the label side, which is on another node.
class feature_side {
 public:
  struct patience {
    std::chrono::milliseconds deadline{30'000};  // for each call and each pass
    int retries = 5;                             // of a failed step, after pauses of 1, 2, 4, ... s, at most 30 s
  };

  feature_side(node& here, std::string label_node, const table& features, training_parameters how, patience with);

  /// Trains for one epoch. Returns the mean loss of its rows. Throws troupe::error if a step failed more often than `patience`
  /// allows, and at once if the label side refuses a step. `on_retry`: called before a step is tried again.
  double train(std::int64_t epoch, const std::function<void(const failed_step&)>& on_retry);

 private:
  double train_batch(const at::Tensor& rows, const std::function<void(const failed_step&)>& on_retry);
  void try_batch(const at::Tensor& rows);

  node& here_;
  const std::string label_node_;
  const at::Tensor values_;
  const at::Tensor people_;
  const training_parameters how_;
  const patience patience_;
  half half_;
  cut cut_;
  std::int64_t step_ = 0;
  std::vector<at::Tensor> gradients_;  // of half_, from the last backward pass of the current step; empty before this pass
  double loss_ = 0;
};

/// Trains both halves in this process, without a network. Two parties with the same seeds should get the same losses.
/// `noise_of_labels`: the seed of the label side's noise. Returns the mean loss of each epoch.
std::vector<double> train_alone(const table& features, const table& labels, const training_parameters& of_features,
                                const cut_options& of_labels, std::optional<std::uint64_t> noise_of_labels,
                                const std::function<void(std::int64_t epoch, double loss)>& on_epoch);

}  // namespace troupe::apps::split
