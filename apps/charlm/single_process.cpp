// SPDX-License-Identifier: BSD-3-Clause
#include "apps/charlm/single_process.hpp"

#include <algorithm>

#include <ATen/Parallel.h>
#include <torch/torch.h>

#include "apps/charlm/corpus.hpp"
#include "apps/charlm/figures.hpp"
#include "apps/charlm/model.hpp"

namespace troupe::apps::charlm {

namespace {

using clock = std::chrono::steady_clock;

/// A model in training.
class trainee {
 public:
  trainee(const model_shape& shape, const recipe& how, const corpus& data)
      : how_(how),
        data_(data),
        model_(shape, 1, how.seed),
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

}  // namespace

single_process_speed measure_single_process(const model_shape& shape, const recipe& how, const corpus& data, int threads,
                                            std::chrono::milliseconds time, const std::function<bool()>& stop) {
  const auto before = at::get_num_threads();
  const auto tokens = static_cast<double>(how.batch * shape.context);
  trainee model{shape, how, data};
  const auto run = [&](int with, double seconds) {
    at::set_num_threads(with);
    for (int i = 0; i < 3 && !stop(); ++i) model.step();
    const auto begin = clock::now();
    int steps = 0;
    while (!stop() && (steps == 0 || seconds_since(begin) < seconds)) {
      model.step();
      ++steps;
    }
    return steps * tokens / seconds_since(begin);
  };
  const auto all = std::chrono::duration<double>(time).count();
  single_process_speed speed;
  speed.with_one_thread = run(1, all / 3);
  speed.with_all_threads = threads > 1 ? run(threads, all * 2 / 3) : speed.with_one_thread;
  at::set_num_threads(before);
  speed.threads = speed.with_all_threads > speed.with_one_thread ? threads : 1;
  speed.tokens_per_second = std::max(speed.with_one_thread, speed.with_all_threads);
  return speed;
}

}  // namespace troupe::apps::charlm
