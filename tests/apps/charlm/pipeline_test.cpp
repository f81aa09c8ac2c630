// SPDX-License-Identifier: BSD-3-Clause
#include "apps/charlm/pipeline.hpp"

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <ATen/Parallel.h>
#include <torch/torch.h>

#include "apps/charlm/gradient_check.hpp"
#include "apps/charlm/stage_module.hpp"
#include "apps/charlm/stage_turns.hpp"

using namespace troupe::apps::charlm;

BOOST_AUTO_TEST_SUITE(training_in_a_pipeline)

namespace {

constexpr model_shape small{.vocabulary = 11, .blocks = 2, .width = 16, .heads = 2, .context = 8};

batch some_windows(std::int64_t count) {
  const auto tokens = at::arange(count * 8, at::kLong).remainder(11).view({count, 8});
  return {tokens, tokens.remainder(7)};
}

recipe cut_into(std::int64_t micro_batches, schedule order = recipe{}.order) {
  recipe how;
  how.batch = 6;
  how.micro_batches = micro_batches;
  how.order = order;
  return how;
}

constexpr schedule all_schedules[] = {schedule::dataflow, schedule::gpipe, schedule::one_forward_one_backward,
                                      schedule::zero_bubble};

troupe::settings named(const std::string& name, std::size_t pass_workers = 0) {
  troupe::settings options;
  options.name = name;
  options.pass_workers = pass_workers;
  return options;
}

/// What a stage has done: a call of `forward`, which has begun or has ended.
using event_of_stage = std::pair<int, std::string>;

/// Counts events of stages. A stage can wait for an event of the other stage.
class stage_events {
 public:
  /// The number of this event, from 1.
  int note(const event_of_stage& event) {
    const std::lock_guard lock(mutex_);
    changed_.notify_all();
    return ++counts_[event];
  }
  void wait_for(const event_of_stage& event, int count) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, std::chrono::seconds(10), [&] { return counts_[event] >= count; }))
      throw std::runtime_error("the stages do not work at once");
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<event_of_stage, int> counts_;
};

const std::string begins = "begins", ends = "ends";

/// A stage that calls `note(stage, begins)` and `note(stage, ends)` around each forward.
class noting_stage : public troupe::module {
 public:
  using listener = std::function<void(int, const std::string&)>;

  noting_stage(const troupe::attributes& values, listener note)
      : index_(static_cast<int>(troupe::get<std::int64_t>(values, "stage"))),
        note_(std::move(note)),
        module_(make_stage_module(std::make_shared<stage>(model_shape::from_attributes(values), stage_position{index_, 2}, 1),
                                  {index_, 2}, *schedule_named(troupe::get<std::string>(values, "schedule")))) {}

  troupe::call_reply call(const std::string& method, troupe::call_arguments& arguments) override {
    if (method == "forward") note_(index_, begins);
    auto reply = module_->call(method, arguments);
    if (method == "forward") note_(index_, ends);
    return reply;
  }
  troupe::named_tensors parameters() override { return module_->parameters(); }

 private:
  int index_;
  listener note_;
  std::shared_ptr<troupe::module> module_;
};

struct cluster {
  explicit cluster(
    noting_stage::listener note = [](int, const std::string&) {}, std::size_t pass_workers = 0)
      : one(named("one", pass_workers)), two(named("two", pass_workers)) {
    for (troupe::node* each : {&one, &two})
      troupe::add_module_type(
        *each, stage_type, [note](const troupe::attributes& values) { return std::make_shared<noting_stage>(values, note); });
    driver.join("127.0.0.1", one.port());
    driver.join("127.0.0.1", two.port());
  }
  std::vector<troupe::peer> stages() { return {driver.peer("one"), driver.peer("two")}; }

  troupe::node driver{named("driver")};
  troupe::node one;
  troupe::node two;
};

}  // namespace

// PI-1: the first stage ends its last forward only when the second stage has ended its first one.
BOOST_AUTO_TEST_CASE(micro_batches_move_one_behind_the_other) {
  for (const auto order : all_schedules) BOOST_TEST_CONTEXT(to_text(order)) {
      stage_events events;
      cluster nodes([&](int stage, const std::string& what) {
        if (events.note({stage, what}) == 3 && stage == 0 && what == ends) events.wait_for({1, ends}, 1);
      });
      pipeline trained(nodes.driver, nodes.stages(), small, cut_into(3, order));
      BOOST_CHECK_NO_THROW(trained.train_step(some_windows(6), 1e-3));
    }
}

// PI-1
BOOST_AUTO_TEST_CASE(stages_hold_what_the_schedule_says) {
  for (const auto order : all_schedules) BOOST_TEST_CONTEXT(to_text(order)) {
      cluster nodes;
      pipeline trained(nodes.driver, nodes.stages(), small, cut_into(6, order));
      const auto result = trained.train_step(some_windows(6), 1e-3);
      BOOST_REQUIRE(result.most_held.size() == 2U);
      if (order == schedule::gpipe) BOOST_TEST((result.most_held == std::vector<std::int64_t>{6, 6}));
      for (std::int64_t index = 0; index < 2; ++index)
        BOOST_TEST(result.most_held[static_cast<std::size_t>(index)] <= limits_of(order, {index, 2}).micro_batches);
      const auto& work = result.work;
      BOOST_TEST((work.weights > 0) == (order == schedule::zero_bubble));
      if (order == schedule::dataflow)
        BOOST_TEST(work.span == 0);
      else
        BOOST_TEST((work.forward > 0 && work.backward > 0 && work.bubble() > 0 && work.bubble() < 1));
    }
}

namespace {

/// Trains for some steps on nodes, and checks the gradients of each. The losses.
std::vector<double> verified_losses(schedule order, const model_shape& shape, std::int64_t steps,
                                    std::size_t pass_workers = 0) {
  const auto windows = some_windows(6);
  cluster nodes([](int, const std::string&) {}, pass_workers);
  const auto how = cut_into(6, order);
  pipeline trained(nodes.driver, nodes.stages(), shape, how);
  whole_model alone(shape, 2, how.seed);
  verification verified;
  std::vector<double> losses;
  for (std::int64_t step = 1; step <= steps; ++step) {
    copy_parameters(trained.parameters(), alone);
    const auto result = trained.train_step(windows, 1e-2, true);
    verified.check(alone, windows, trained.micro_batch_sizes(), step, {"one", "two"}, result.gradients);
    losses.push_back(result.loss);
  }
  BOOST_TEST(verified.steps() == steps);
  return losses;
}

}  // namespace

// PI-2: the bits of a sum of six gradients depend on the order of the gradients.
BOOST_AUTO_TEST_CASE(each_schedule_has_the_bits_of_a_single_process) {
  at::set_num_threads(1);
  const auto expected = verified_losses(schedule::dataflow, small, 3);
  for (const auto order : all_schedules)
    BOOST_TEST_CONTEXT(to_text(order)) BOOST_TEST((verified_losses(order, small, 3) == expected));
}

// PI-2: functions of all micro-batches that a stage holds run on its workers at once.
BOOST_AUTO_TEST_CASE(each_schedule_has_the_bits_of_a_single_process_with_workers_too) {
  at::set_num_threads(1);
  auto shape = small;
  shape.width = 64;
  const auto expected = verified_losses(schedule::dataflow, shape, 5);
  for (const auto order : all_schedules)
    BOOST_TEST_CONTEXT(to_text(order)) BOOST_TEST((verified_losses(order, shape, 5, 2) == expected));
}

// TG-4: the micro-batches of the failed step give back their places in the stages.
BOOST_AUTO_TEST_CASE(a_step_after_a_failed_one_does_not_wait_for_it) {
  for (const auto order : all_schedules) BOOST_TEST_CONTEXT(to_text(order)) {
      cluster nodes;
      pipeline trained(nodes.driver, nodes.stages(), small, cut_into(6, order));
      auto wrong = some_windows(6);
      wrong.targets = at::full_like(wrong.targets, small.vocabulary);
      BOOST_CHECK_THROW(trained.train_step(wrong, 1e-3), std::exception);
      BOOST_CHECK_NO_THROW(trained.train_step(some_windows(6), 1e-3));
    }
}

// PI-3
BOOST_AUTO_TEST_CASE(the_driver_sends_tokens_and_gets_losses) {
  cluster nodes;
  auto shape = small;
  shape.width = 64;
  constexpr std::int64_t count = 256;
  auto how = cut_into(3);
  how.batch = count;
  pipeline trained(nodes.driver, nodes.stages(), shape, how);
  const auto bytes_of = [&](const auto& of) {
    std::uint64_t bytes = 0;
    for (const auto& each : of) bytes += each.bytes_sent + each.bytes_received + each.bytes_read;
    return bytes;
  };
  const auto traffic = [&] { return bytes_of(nodes.driver.status().peers); };
  const auto before = traffic();
  trained.train_step(some_windows(count), 1e-3);
  const auto hidden = static_cast<std::uint64_t>(count * shape.context * shape.width) * sizeof(float);
  const auto logits = static_cast<std::uint64_t>(count * shape.context * shape.vocabulary) * sizeof(float);
  const auto through_the_driver = 2 * (2 * hidden + logits);  // values and their gradients
  BOOST_TEST(traffic() - before < through_the_driver / 10);
  BOOST_TEST(bytes_of(nodes.one.status().peers) > 2 * hidden);
}

namespace {

struct wire_run {
  double loss = 0;  // of an evaluation after the steps
  std::uint64_t sent = 0;
  std::uint64_t before_compression = 0;
};

/// Trains a new model and counts the bytes of the first stage.
wire_run trained_with(troupe::wire_format wire) {
  at::set_num_threads(1);
  cluster nodes;
  const model_shape shape{.vocabulary = 11, .blocks = 2, .width = 32, .heads = 2, .context = 8};
  auto how = cut_into(2);
  how.batch = 24;
  how.wire = wire;
  pipeline trained(nodes.driver, nodes.stages(), shape, how);
  for (int step = 0; step < 25; ++step) trained.train_step(some_windows(how.batch), 2e-3);
  wire_run result;
  result.loss = trained.evaluate(some_windows(how.batch));
  for (const auto& peer : nodes.one.status().peers) {
    result.sent += peer.bytes_sent + peer.bytes_received;
    result.before_compression += peer.plain_bytes_sent + peer.plain_bytes_received;
  }
  return result;
}

}  // namespace

// PI-4
BOOST_AUTO_TEST_CASE(compression_changes_the_loss_by_less_than_a_hundredth) {
  const auto exact = trained_with(troupe::wire_format::exact);
  BOOST_TEST(exact.loss < 2);  // it has learned
  BOOST_TEST(exact.loss > 0.1);
  BOOST_TEST(exact.sent == exact.before_compression);
  for (const auto wire : {troupe::wire_format::bfloat16, troupe::wire_format::float16, troupe::wire_format::int8})
    BOOST_TEST_CONTEXT(to_text(wire)) {
      const auto found = trained_with(wire);
      BOOST_TEST(std::abs(found.loss - exact.loss) <= 0.01 * exact.loss, found.loss << " instead of " << exact.loss);
      BOOST_TEST(found.loss != exact.loss);
      BOOST_TEST(found.before_compression == exact.sent);
      BOOST_TEST(static_cast<double>(found.sent) < 0.7 * static_cast<double>(exact.sent));
    }
}

// PI-4
BOOST_AUTO_TEST_CASE(a_step_whose_gradients_are_compared_is_exact) {
  at::set_num_threads(1);
  cluster nodes;
  const model_shape shape{.vocabulary = 11, .blocks = 2, .width = 32, .heads = 2, .context = 8};
  auto how = cut_into(2);
  how.batch = 24;
  how.wire = troupe::wire_format::int8;
  pipeline trained(nodes.driver, nodes.stages(), shape, how);
  whole_model alone(shape, 2, how.seed);
  verification verified;
  const auto windows = some_windows(how.batch);
  verified.check(alone, windows, trained.micro_batch_sizes(), 1, {"one", "two"},
                 trained.train_step(windows, 0, true).gradients);
  BOOST_TEST(verified.steps() == 1);
}

BOOST_AUTO_TEST_CASE(a_stage_that_does_not_know_the_one_before_it_says_so) {
  cluster nodes;
  const auto last = nodes.driver.peer("two").create(stage_type, stage_attributes(small, {1, 2}, 1));
  const auto windows = some_windows(1);
  const auto says = [](const std::string& words) {
    return [words](const std::exception& failure) { return std::string(failure.what()).find(words) != std::string::npos; };
  };
  BOOST_CHECK_EXCEPTION(last.call("forward", {windows.inputs, windows.targets}, {{"share", 1.0}}).get(), troupe::error,
                        says("stage 2 of 2 does not know the stage before it; call follow first"));
  BOOST_CHECK_EXCEPTION(last.call("forward", {windows.inputs}).get(), troupe::error, says("expected two tensors"));
}

BOOST_AUTO_TEST_SUITE_END()
