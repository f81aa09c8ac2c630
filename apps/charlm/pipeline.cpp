// SPDX-License-Identifier: BSD-3-Clause
#include "apps/charlm/pipeline.hpp"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <exception>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>

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

std::vector<remote_module> make_stages(const std::vector<peer>& where, const model_shape& shape, const recipe& how,
                                       const std::string& device) {
  std::vector<remote_module> stages;
  const auto count = static_cast<std::int64_t>(where.size());
  for (std::int64_t i = 0; i < count; ++i)
    stages.push_back(
      make_stage(where[static_cast<std::size_t>(i)], stage_attributes(shape, {i, count}, how.seed, device, how.order)));
  for (std::size_t i = 1; i < stages.size(); ++i)
    stages[i].call("follow", {}, {{"previous", stages[i - 1].lend(stages[i].where())}}).get();
  return stages;
}

/// What the threads of a step do in the order of their numbers.
enum event : std::size_t { sent, returned, gathered };

/// Lets threads do things in the order of their numbers.
class ordered_events {
 public:
  /// Runs `what` once all lower numbers have had this event. Throws if fail() was called.
  template <class F>
  void in_order(event of, std::size_t number, F&& what) {
    checked_unique_lock lock(mutex_);
    wait_for(of, number, lock);
    what();
    ++counts_.at(of);
    changed_.notify_all();
  }

  /// Waits until `count` numbers have had the event. Throws if fail() was called.
  void wait_for_all(event of, std::size_t count) {
    checked_unique_lock lock(mutex_);
    wait_for(of, count, lock);
  }

  /// All threads that still wait throw. Keeps the first failure.
  void fail(std::exception_ptr failure) {
    const checked_lock lock(mutex_);
    if (!failure_) failure_ = std::move(failure);
    changed_.notify_all();
  }

  void rethrow() const {
    const checked_lock lock(mutex_);
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  void wait_for(event of, std::size_t count, checked_unique_lock& lock) TROUPE_REQUIRES(mutex_) {
    while (counts_.at(of) < count && !failure_) changed_.wait(lock);
    if (failure_) throw std::runtime_error("an earlier part of the batch failed");
  }

  mutable checked_mutex mutex_;
  std::condition_variable changed_;
  std::array<std::size_t, 3> counts_ TROUPE_GUARDED_BY(mutex_){};
  std::exception_ptr failure_ TROUPE_GUARDED_BY(mutex_);
};

/// Runs `run(number, events)` for each number below `count`, each on a thread of its own. Throws what the first failing run
/// threw.
template <class F>
void at_once(std::size_t count, F&& run) {
  ordered_events events;
  std::vector<std::jthread> threads;
  for (std::size_t number = 0; number < count; ++number)
    threads.emplace_back([&, number] {
      try {
        run(number, events);
      } catch (...) {
        events.fail(std::current_exception());
      }
    });
  threads.clear();
  events.rethrow();
}

constexpr std::int64_t windows_a_call = 32;  // windows in one call of an evaluation
constexpr std::size_t calls_at_once = 8;

}  // namespace

pipeline::pipeline(node& here, const std::vector<peer>& where, const model_shape& shape, const recipe& how,
                   const std::string& device)
    : here_(&here),
      how_(how),
      sizes_(charlm::micro_batch_sizes(how.batch, how.micro_batches)),
      stages_(make_stages(where, shape, how, device)),
      optimizer_(here, {"adamw", how.optimizer_options()}, stages_) {}

/// The loss of the windows times `share`, from the last stage. Each stage calls the one before it.
future<call_reply> pipeline::call_stages(const char* method, const batch& windows, double share,
                                         std::int64_t micro_batch) const {
  std::vector<at::Tensor> tensors{windows.inputs, windows.targets};
  return stages_.back().call(method, std::move(tensors), {{"share", share}, {"micro_batch", micro_batch}});
}

step_result pipeline::train_step(const batch& windows, double learning_rate, bool keep_gradients) {
  const auto micro_batches = cut(windows, sizes_);
  step_result result;
  at_once(micro_batches.size(), [&](std::size_t number, ordered_events& events) {
    const auto& mine = micro_batches[number];
    context pass{*here_, keep_gradients ? wire_format::exact : how_.wire};
    future<call_reply> called;
    events.in_order(sent, number,
                    [&] { called = call_stages("forward", mine.windows, mine.share, static_cast<std::int64_t>(number)); });
    const auto loss = called.get().tensor(0);
    if (how_.order == schedule::gpipe) {
      events.in_order(returned, number, [] {});
      events.wait_for_all(returned, micro_batches.size());
    }
    pass.backward({loss}).get();
    events.in_order(gathered, number, [&] {
      optimizer_.gather(pass);
      result.loss += loss.item<double>();
      if (keep_gradients) add_gradients(result.gradients, pass);
    });
  });
  add_work(result);
  optimizer_.set_learning_rate(learning_rate);
  result.gradient_norm = optimizer_.step(how_.clip_norm).value_or(0);
  return result;
}

/// Adds what the stages have done since the last call. No clock of one node is compared with that of another.
void pipeline::add_work(step_result& to) const {
  std::vector<future<call_reply>> called;
  for (const auto& each : stages_) called.push_back(each.call("work"));
  double longest = 0;
  for (const auto& each : called) {
    const auto values = each.get().values;
    const auto seconds = [&](const char* name) { return get<double>(values, name); };
    to.work += {.forward = seconds("forward"), .backward = seconds("backward"), .weights = seconds("weights")};
    longest = std::max(longest, seconds("span"));
    to.most_held.push_back(get<std::int64_t>(values, "most_held"));
  }
  to.work.span = longest * static_cast<double>(stages_.size());
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
