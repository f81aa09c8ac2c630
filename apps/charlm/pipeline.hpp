// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include <troupe/actors/context.hpp>
#include <troupe/actors/node.hpp>
#include <troupe/actors/optimizer.hpp>
#include <troupe/actors/remote_module.hpp>

#include "apps/charlm/corpus.hpp"
#include "apps/charlm/model.hpp"
#include "apps/charlm/recipe.hpp"
#include "apps/charlm/schedule.hpp"

namespace troupe::apps::charlm {

struct step_result {
  double loss = 0;                       // mean over the batch, nats per character
  double gradient_norm = 0;              // over all nodes, before clipping
  std::vector<named_tensors> gradients;  // one list per stage, if asked for
  work_times work;                       // summed over the stages; the span is the longest one, once for each stage
  std::vector<std::int64_t> most_held;   // the most micro-batches that each stage held at a time
};

/// A model whose stages live on nodes, trained from this node.
///   PI-1  the stages run the forwards and backwards of a step's micro-batches in the order of the schedule. Each micro-batch
///         has a context and a pass of its own.
///   PI-2  gradients are summed in the order of the micro-batches. So with each schedule they have the bits of a single
///         process.
///   PI-3  activations and gradients go from stage to stage. This node sends tokens and gets losses.
///   PI-4  activations and gradients of a step travel as `recipe::wire` says, or exactly if the step's gradients are kept to be
///         compared. Evaluations are exact.
class pipeline {
 public:
  /// Creates one stage on each of the peers, in order, each on device `device` of its node. Each peer has to reach the one
  /// before it. Blocks. Throws troupe::error.
  pipeline(node& here, const std::vector<peer>& where, const model_shape& shape, const recipe& how,
           const std::string& device = "cpu");

  step_result train_step(const batch& windows, double learning_rate, bool keep_gradients = false);

  /// The mean loss over the targets that are not negative.
  double evaluate(const batch& windows);

  /// Copies of the parameters, one named list per stage.
  std::vector<named_tensors> parameters() const;

  /// Throws std::runtime_error with the node's name, unless every stage computes with one thread inside an operation. With
  /// more threads, sums are made in another order than in a single process with one thread, and so have other bits.
  void expect_one_thread() const;

  optimizer& optimiser() noexcept { return optimizer_; }
  const std::vector<std::int64_t>& micro_batch_sizes() const noexcept { return sizes_; }

 private:
  future<call_reply> call_stages(const char* method, const batch& windows, double share, std::int64_t micro_batch = 0) const;
  void add_gradients(std::vector<named_tensors>& to, const context& pass) const;
  void add_work(step_result& to) const;

  node* here_;
  recipe how_;
  std::vector<std::int64_t> sizes_;  // windows in each micro-batch
  std::vector<remote_module> stages_;
  optimizer optimizer_;
};

}  // namespace troupe::apps::charlm
