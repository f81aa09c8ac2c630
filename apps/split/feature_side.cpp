// SPDX-License-Identifier: BSD-3-Clause
#include "apps/split/feature_side.hpp"

#include <algorithm>
#include <cmath>
#include <thread>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <torch/csrc/autograd/autograd.h>

#include <troupe/actors/context.hpp>
#include <troupe/messages/errors.hpp>

#include "apps/split/label_side.hpp"

namespace troupe::apps::split {

namespace {

constexpr std::chrono::seconds first_pause{1};
constexpr std::chrono::seconds longest_pause{30};

/// True for errors after which a step is not tried again, because the same call would fail in the same way.
bool is_final(errc code) {
  return code == errc::refused || code == errc::misuse || code == errc::unknown_function || code == errc::function_failed ||
         code == errc::stopping;
}

}  // namespace

std::vector<at::Tensor> batches_of(std::int64_t rows, std::int64_t epoch, const training_parameters& how) {
  auto random = at::make_generator<at::CPUGeneratorImpl>(how.batch_seed * 1'000'003 + static_cast<std::uint64_t>(epoch));
  return at::randperm(rows, random, at::TensorOptions(at::kLong)).split(how.batch);
}

feature_side::feature_side(node& here, std::string label_node, const table& features, training_parameters how, patience with)
    : here_(here),
      label_node_(std::move(label_node)),
      values_(features.values),
      people_(at::tensor(features.people)),
      how_(how),
      patience_(with),
      half_(features_half(features.columns(), how.seed)),
      cut_(how.how, how.noise_seed) {}

double feature_side::train(std::int64_t epoch, const std::function<void(const failed_step&)>& on_retry) {
  double sum = 0;
  for (const auto& rows : batches_of(values_.size(0), epoch, how_))
    sum += train_batch(rows, on_retry) * static_cast<double>(rows.numel());
  return sum / static_cast<double>(values_.size(0));
}

double feature_side::train_batch(const at::Tensor& rows, const std::function<void(const failed_step&)>& on_retry) {
  ++step_;
  gradients_.clear();
  auto pause = first_pause;
  for (int attempt = 1;; ++attempt) {
    try {
      try_batch(rows);
      half_.step(how_.rate, gradients_);
      return loss_;
    } catch (const error& failure) {
      if (is_final(failure.code()) || attempt > patience_.retries) throw;
      on_retry({step_, attempt, failure.what()});
      std::this_thread::sleep_for(pause);
      pause = std::min(2 * pause, longest_pause);
    }
  }
}

void feature_side::try_batch(const at::Tensor& rows) {
  const auto there = here_.peer(label_node_, patience_.deadline);
  context pass(here_);
  const auto activations = cut_.shielded(half_.forward(values_.index_select(0, rows)));
  const auto ask = [&](const char* what, std::vector<at::Tensor> tensors) {
    return there
      .call(label_side::name, std::move(tensors), {{"do", std::string(what)}, {"step", step_}}, {}, patience_.deadline)
      .get();
  };
  const auto answer = ask("loss", {activations, people_.index_select(0, rows)});
  if (answer.values.contains("learned")) {
    // The label side has learned this step in an earlier try, and only its answer was lost. `gradients_` still has the
    // gradients of that try.
    if (!gradients_.empty()) return;
    throw error(errc::misuse, "the other party has learned step " + std::to_string(step_) +
                                " already, with another run of this party; start both parties anew");
  }
  const auto loss = answer.tensor(0);
  if (!std::isfinite(loss.item<double>()))
    throw error(errc::misuse, "the loss of step " + std::to_string(step_) + " is not a finite number; try a smaller --rate");
  pass.backward({loss}, {.deadline = patience_.deadline}).get();
  std::vector<at::Tensor> gradients;
  for (const auto& each : half_.parameters()) gradients.push_back(pass.gradient(each));
  gradients_ = std::move(gradients);
  loss_ = loss.item<double>();
  ask("learn", {});
}

std::vector<double> train_alone(const table& features, const table& labels, const training_parameters& of_features,
                                const cut_options& of_labels, std::optional<std::uint64_t> noise_of_labels,
                                const std::function<void(std::int64_t epoch, double loss)>& on_epoch) {
  std::unordered_map<std::int64_t, std::int64_t> row_of;
  for (std::int64_t row = 0; row < labels.rows(); ++row) row_of[labels.people[static_cast<std::size_t>(row)]] = row;
  std::vector<std::int64_t> order;
  for (const auto person : features.people) {
    if (!row_of.contains(person)) throw error(errc::misuse, "there is no label of person " + std::to_string(person));
    order.push_back(row_of[person]);
  }
  const auto classes = labels.values.index_select(0, at::tensor(order));
  auto first = features_half(features.columns(), of_features.seed);
  auto second = labels_half(of_features.seed);
  cut forward_cut(of_features.how, of_features.noise_seed);
  cut backward_cut(of_labels, noise_of_labels);
  std::vector<double> result;
  for (std::int64_t epoch = 1; epoch <= of_features.epochs; ++epoch) {
    double sum = 0;
    for (const auto& rows : batches_of(features.rows(), epoch, of_features)) {
      const auto activations = forward_cut.shielded(first.forward(features.values.index_select(0, rows)));
      const auto loss = loss_of(second, backward_cut.with_shielded_gradient(activations), classes.index_select(0, rows));
      auto all = first.parameters();
      all.insert(all.end(), second.parameters().begin(), second.parameters().end());
      const auto gradients = torch::autograd::grad({loss}, all);
      const at::TensorList both(gradients);
      const auto of_first = first.parameters().size();
      first.step(of_features.rate, both.slice(0, of_first));
      second.step(of_features.rate, both.slice(of_first));
      sum += loss.item<double>() * static_cast<double>(rows.numel());
    }
    result.push_back(sum / static_cast<double>(features.rows()));
    on_epoch(epoch, result.back());
  }
  return result;
}

}  // namespace troupe::apps::split
