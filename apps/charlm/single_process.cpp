// SPDX-License-Identifier: BSD-3-Clause
#include "apps/charlm/single_process.hpp"

#include <chrono>
#include <vector>

#include <ATen/Parallel.h>
#include <torch/torch.h>

#include "apps/charlm/corpus.hpp"
#include "apps/charlm/figures.hpp"
#include "apps/charlm/model.hpp"

namespace troupe::apps::charlm {

constexpr int turns_after_the_first = 4;

/// A model and its optimizer. Each step() trains with the next batch.
class single_process::trainee {
 public:
  trainee(const model_shape& shape, const recipe& how, const corpus& data, c10::Device device)
      : how_(how),
        data_(data),
        model_(shape, 1, how.seed, device),
        parameters_(model_.parameters()),
        optimizer_(parameters_, options(how)) {}

  void step() {
    const auto windows = data_.training_batch(how_.seed, step_++, how_.batch);
    const auto loss = character_loss(model_.forward(windows.inputs), windows.targets);
    optimizer_.zero_grad();
    torch::autograd::backward({loss}, {});
    torch::nn::utils::clip_grad_norm_(parameters_, how_.clip_norm);
    optimizer_.step();
  }

 private:
  static torch::optim::AdamWOptions options(const recipe& how) {
    return torch::optim::AdamWOptions(how.learning_rate).weight_decay(how.weight_decay).betas({how.beta1, how.beta2});
  }

  const recipe& how_;
  const corpus& data_;
  whole_model model_;
  std::vector<at::Tensor> parameters_;
  torch::optim::AdamW optimizer_;
  std::int64_t step_ = 0;
};

single_process::single_process(const model_shape& shape, const recipe& how, const corpus& data, c10::Device device)
    : tokens_a_step_(static_cast<double>(how.batch * shape.context)),
      trainee_(std::make_unique<trainee>(shape, how, data, device)) {}

single_process::~single_process() = default;

void single_process::run(timing& with, double seconds, const std::function<bool()>& stop) {
  const auto before = at::get_num_threads();
  at::set_num_threads(with.threads);
  if (!stop()) trainee_->step();
  const auto begin = std::chrono::steady_clock::now();
  double tokens = 0;
  while (!stop() && (tokens == 0 || seconds_since(begin) < seconds)) {
    trainee_->step();
    tokens += tokens_a_step_;
  }
  with.tokens += tokens;
  with.seconds += seconds_since(begin);
  at::set_num_threads(before);
}

void single_process::compare(int threads, double seconds, const std::function<bool()>& stop) {
  one_thread_.threads = 1;
  all_threads_.threads = threads;
  for (int i = 0; i < 2 && !stop(); ++i) trainee_->step();  // these steps are not counted, because they load libraries
  run(one_thread_, seconds / 3, stop);
  if (threads > 1) run(all_threads_, seconds * 2 / 3, stop);
  best_ = all_threads_.speed() > one_thread_.speed() ? &all_threads_ : &one_thread_;
}

single_process_speed single_process::speed() const {
  return {.tokens_per_second = best_->speed(),
          .threads = best_->threads,
          .with_one_thread = one_thread_.speed(),
          .with_all_threads = all_threads_.threads > 1 ? all_threads_.speed() : one_thread_.speed()};
}

void single_process_turns::begin(const run_state& state, const corpus& data, int threads, c10::Device device) {
  if (!measures()) return;
  process_ = std::make_unique<single_process>(state.shape, state.how, data, device);
  process_->compare(threads, first_half(), stop_);
  every_ = (1 - state.fraction()) / (turns_after_the_first + 1);
  next_ = state.fraction() + every_;
}

bool single_process_turns::run_due(double fraction) {
  if (!process_ || fraction < next_) return false;
  while (next_ <= fraction) next_ += every_;
  process_->train(seconds_ / 2 / turns_after_the_first, stop_);
  return true;
}

single_process_speed single_process_turns::speed() const { return process_ ? process_->speed() : single_process_speed{}; }

}  // namespace troupe::apps::charlm
