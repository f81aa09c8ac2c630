// SPDX-License-Identifier: BSD-3-Clause
#include "apps/charlm/pipeline.hpp"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <memory>
#include <stdexcept>
#include <thread>

#include <ATen/ATen.h>

#include "apps/charlm/stage_module.hpp"

#include <troupe/messages/mutex.hpp>

namespace troupe::apps::charlm {

namespace {

remote_module make_stage(const peer& where, const attributes& values) {
  try {
    return where.create(stage_type, values);
  } catch (const error& failure) {
    if (failure.code() != errc::unknown_function) throw;
    throw error(failure.code(), "expected a node with charlm, but node '" + where.name() + "' has no module type '" +
                                  stage_type + "'; start it with --load charlm");
  }
}

std::vector<remote_module> make_stages(const std::vector<peer>& where, const model_shape& shape, std::uint64_t seed,
                                       const std::string& device) {
  std::vector<remote_module> stages;
  const auto count = static_cast<std::int64_t>(where.size());
  for (std::int64_t i = 0; i < count; ++i)
    stages.push_back(make_stage(where[static_cast<std::size_t>(i)], stage_attributes(shape, {i, count}, seed, device)));
  for (std::size_t i = 0; i + 1 < stages.size(); ++i)
    stages[i].call("follow", {}, {{"next", stages[i + 1].lend(stages[i].where())}}).get();
  return stages;
}

/// Lets threads take turns in the order of their numbers.
class turns {
 public:
  /// Runs `what` after all lower numbers have had their turn. Throws if fail() was called.
  template <class F>
  void in_turn(std::size_t number, F&& what) {
    checked_unique_lock lock(mutex_);
    while (next_ != number && !failed_) changed_.wait(lock);
    if (failed_) throw std::runtime_error("an earlier part of the batch failed");
    what();
    ++next_;
    changed_.notify_all();
  }

  /// All threads that still wait get no turn. Keeps the first failure.
  void fail(std::exception_ptr failure) {
    const checked_lock lock(mutex_);
    if (!failed_) failure_ = std::move(failure);
    failed_ = true;
    changed_.notify_all();
  }

  void rethrow() const {
    const checked_lock lock(mutex_);
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  mutable checked_mutex mutex_;
  std::condition_variable changed_;
  std::size_t next_ TROUPE_GUARDED_BY(mutex_) = 0;
  bool failed_ TROUPE_GUARDED_BY(mutex_) = false;
  std::exception_ptr failure_ TROUPE_GUARDED_BY(mutex_);
};

/// Runs `run(number, in_turn)` for each number below `count`, each on a thread of its own. Throws what the first failing run
/// threw.
template <class F>
void at_once(std::size_t count, F&& run) {
  turns order;
  std::vector<std::jthread> threads;
  for (std::size_t number = 0; number < count; ++number)
    threads.emplace_back([&, number] {
      try {
        run(number, [&](auto&& what) { order.in_turn(number, what); });
      } catch (...) {
        order.fail(std::current_exception());
      }
    });
  threads.clear();
  order.rethrow();
}

constexpr std::int64_t windows_a_call = 32;  // windows in one call of an evaluation
constexpr std::size_t calls_at_once = 8;

}  // namespace

pipeline::pipeline(node& here, const std::vector<peer>& where, const model_shape& shape, const recipe& how,
                   const std::string& device)
    : here_(&here),
      how_(how),
      cuts_(share_out(micro_batch_sizes(how.batch, how.micro_batches), how.contexts)),
      stages_(make_stages(where, shape, how.seed, device)),
      optimizer_(here, {"adamw", how.optimizer_options()}, stages_) {}

/// The loss of the windows times `share`, from the last stage. Each stage calls the next one.
future<call_reply> pipeline::call_stages(const char* method, const batch& windows, double share) const {
  return stages_.front().call(method, {windows.inputs, windows.targets}, {{"share", share}});
}

step_result pipeline::train_step(const batch& windows, double learning_rate, bool keep_gradients) {
  const auto shares = cut(windows, cuts_);
  step_result result;
  at_once(shares.size(), [&](std::size_t share, auto&& in_turn) {
    const auto& micro_batches = shares[share];
    context pass{*here_, keep_gradients ? wire_format::exact : how_.wire};
    std::vector<future<call_reply>> called;
    for (const auto& each : micro_batches) called.push_back(call_stages("forward", each.windows, each.share));
    std::vector<at::Tensor> losses;
    for (const auto& each : called) losses.push_back(each.get().tensor(0));
    pass.backward(losses).get();
    in_turn([&] {
      optimizer_.gather(pass);
      for (const auto& loss : losses) result.loss += loss.item<double>();
      if (keep_gradients) add_gradients(result.gradients, pass);
    });
  });
  optimizer_.set_learning_rate(learning_rate);
  result.gradient_norm = optimizer_.step(how_.clip_norm).value_or(0);
  return result;
}

/// Adds the gradients that the nodes gathered, in the order in which the optimizer adds them, so that the sums have the same
/// bits.
void pipeline::add_gradients(std::vector<named_tensors>& to, const context& pass) const {
  const at::NoGradGuard no_graph;
  to.resize(stages_.size());
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    const auto came = stages_[s].gradients(pass);
    if (to[s].empty())
      to[s] = came;
    else
      for (std::size_t i = 0; i < came.size(); ++i) to[s][i].second = to[s][i].second + came[i].second;
  }
}

double pipeline::evaluate(const batch& windows) {
  const at::NoGradGuard no_graph;
  const auto inputs = windows.inputs.split(windows_a_call);
  const auto targets = windows.targets.split(windows_a_call);
  double sum = 0;
  double characters = 0;
  for (std::size_t begin = 0; begin < inputs.size(); begin += calls_at_once) {
    const auto end = std::min(begin + calls_at_once, inputs.size());
    std::vector<future<call_reply>> called;
    for (auto i = begin; i < end; ++i) called.push_back(call_stages("evaluate", {inputs[i], targets[i]}, 1));
    for (auto i = begin; i < end; ++i) {
      const auto loss = called[i - begin].get().tensor(0).item<double>();
      const auto count = targets[i].ge(0).sum().item<double>();
      sum += count == 0 ? 0 : loss * count;
      characters += count;
    }
  }
  return sum / characters;
}

void pipeline::expect_one_thread() const {
  for (const auto& each : stages_) {
    const auto threads = get<std::int64_t>(each.call("threads").get().values, "threads");
    if (threads != 1)
      throw std::runtime_error(
        "expected node " + each.where().name() + " to use one thread inside an operation, but it uses " +
        std::to_string(threads) +
        ". With several threads gradients have other bits than those of a single process: give the node \"threads\": 1 in the "
        "cluster file (--threads 1), or leave the comparison out with --verify-steps 0");
  }
}

std::vector<named_tensors> pipeline::parameters() const {
  std::vector<named_tensors> all;
  for (const auto& each : stages_) all.push_back(each.parameters());
  return all;
}

}  // namespace troupe::apps::charlm
