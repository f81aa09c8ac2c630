// SPDX-License-Identifier: BSD-3-Clause
// A node's part in a distributed pass: gradients come for its sends one after the other, and workers run functions between.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/csrc/autograd/variable.h>
#include <boost/test/unit_test.hpp>

#include <troupe/engine/cost_book.hpp>
#include <troupe/engine/current_pass.hpp>
#include <troupe/engine/gradient_table.hpp>
#include <troupe/engine/graph_task.hpp>
#include <troupe/engine/recv_backward.hpp>
#include <troupe/engine/send_backward.hpp>

#include "engine/oracle.hpp"
#include "engine/random_program.hpp"
#include "engine/threads.hpp"

using namespace troupe::engine;
using namespace troupe::test;

BOOST_AUTO_TEST_SUITE(parallel_bursts)

namespace {

troupe::message_id message(std::uint64_t number) { return {number, troupe::node_id{0xabc}}; }

/// Makes the task of a random program whose values are sends, and runs the task in bursts: some sends get gradients, some are dropped.
/// `next_workers` gives the workers of each burst. The gradients of the leaves; nothing if a function failed.
template <class NextWorkers>
std::optional<std::vector<at::Tensor>> run_in_bursts(std::uint64_t seed, NextWorkers next_workers) {
  program_options options;
  options.steps = 40;
  const random_program program(seed, options);
  std::mt19937_64 random(seed);
  gradient_table leaves;
  graph_task_settings settings;
  settings.leaves = &leaves;
  std::vector<at::Tensor> sent;
  for (const auto& value : program.values) {
    if (value.is_leaf() || value.is_sparse() || random() % 3 != 0) continue;
    settings.sends.push_back({attach_send(message(sent.size() + 1), {value}), 0});
    sent.push_back(value);
  }
  if (sent.empty()) return std::nullopt;
  std::vector<std::size_t> order(sent.size());
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  try {
    graph_task task(std::move(settings));
    for (const auto send : order) {
      if (random() % 5 == 0)
        task.drop(send);
      else
        task.deliver(send, {at::ones_like(sent[send])});
      if (random() % 2 == 0) continue;  // the burst begins with more than one
      task.use_workers(next_workers());
      task.run();
    }
    task.use_workers(next_workers());
    task.run();
    BOOST_TEST(task.finished());
  } catch (const std::exception&) {
    return std::nullopt;
  }
  std::vector<at::Tensor> result;
  for (const auto& leaf : program.leaves) result.push_back(leaves.find(leaf));
  return result;
}

/// Notes what it is told with each gradient.
struct told final : outlet {
  void emit(const recv_backward&, std::vector<at::Tensor>, std::vector<bool>, bool more) override { mores.push_back(more); }
  std::vector<bool> mores;
};

}  // namespace

// GT-7
BOOST_AUTO_TEST_CASE(have_the_bits_of_serial_ones) {
  at::set_num_threads(1);
  threads some(2);
  int compared = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    const auto expected = run_in_bursts(seed, [] { return nullptr; });
    std::mt19937_64 random(seed);
    const auto found = run_in_bursts(seed, [&]() -> cpu_workers* { return random() % 4 == 0 ? nullptr : &some; });
    BOOST_TEST(found.has_value() == expected.has_value(), "seed " << seed);
    if (!found || !expected) continue;
    BOOST_TEST(difference(*found, *expected) == "", "seed " << seed);
    ++compared;
  }
  BOOST_TEST(compared > 200);  // which programs throw depends on the order in which the compiler evaluates arguments
}

// The last gradient of a burst carries the rest of the weight, so the outlet has to know that it is the last.
BOOST_AUTO_TEST_CASE(say_that_no_more_follows_only_with_the_last_gradient) {
  threads some(2);
  for (int round = 0; round < 200; ++round) {
    std::vector<at::Tensor> parts;
    for (std::uint64_t i = 0; i < 6; ++i) {
      auto part = attach_recv({troupe::node_id{1}, 1}, message(i + 1), {at::linspace(0, 1, 64)}, {true})[0];
      for (int depth = 0; depth < 3; ++depth) part = part.sin();
      parts.push_back(part);
    }
    told out;
    graph_task_settings settings;
    settings.roots = {torch::autograd::impl::gradient_edge(at::stack(parts).sum())};
    settings.root_gradients = {at::ones({})};
    settings.emit_to = &out;
    settings.workers = &some;
    graph_task task(std::move(settings));
    task.run();
    BOOST_REQUIRE_EQUAL(out.mores.size(), parts.size());
    BOOST_TEST(std::all_of(out.mores.begin(), out.mores.end() - 1, [](bool more) { return more; }), "round " << round);
  }
}

// GT-11: callbacks run before the rest of the weight leaves.
BOOST_AUTO_TEST_CASE(say_that_more_follows_the_last_gradient_if_a_callback_waits) {
  for (int round = 0; round < 4; ++round) {
    told out;
    int called = 0;
    const auto received = attach_recv({troupe::node_id{1}, 1}, message(1), {at::ones({2})}, {true})[0];
    const auto sum = received.sin().sum();
    const auto queue = [&, is_libtorchs = round % 2 == 1](const auto& gradients) {
      const auto call = [&] { ++called; };
      if (is_libtorchs)
        torch::autograd::Engine::get_default_engine().queue_callback(call);
      else
        troupe::queue_callback(call);
      return gradients;
    };
    if (round < 2)
      sum.register_hook([&](const at::Tensor& gradient) { return queue(gradient); });
    else  // runs when the gradient has left
      received.grad_fn()->add_post_hook(std::make_unique<torch::autograd::utils::LambdaPostHook>(
        [&](const auto& outputs, const auto&) { return queue(outputs); }));
    graph_task_settings settings;
    settings.roots = {torch::autograd::impl::gradient_edge(sum)};
    settings.root_gradients = {at::ones({})};
    settings.emit_to = &out;
    graph_task task(std::move(settings));
    task.run();
    BOOST_TEST((out.mores == std::vector<bool>{true}));
    BOOST_TEST(called == 1);
  }
}

// GT-11: without a table, the hook runs when the gradient is in `.grad`.
BOOST_AUTO_TEST_CASE(run_libtorchs_callbacks_of_hooks_after_an_accumulation) {
  struct queueing final : torch::autograd::PostAccumulateGradHook {
    explicit queueing(int& called) : called(called) {}
    void operator()(const at::Tensor&) override {
      torch::autograd::Engine::get_default_engine().queue_callback([this] { ++called; });
    }
    int& called;
  };
  int called = 0;
  const auto x = at::ones({2}).requires_grad_();
  torch::autograd::impl::set_post_acc_grad_hooks(x, std::make_unique<queueing>(called));
  told out;
  graph_task_settings settings;
  settings.roots = {torch::autograd::impl::gradient_edge(x * 2)};
  settings.root_gradients = {at::ones({2})};
  settings.emit_to = &out;
  graph_task task(std::move(settings));
  task.run();
  BOOST_TEST(called == 1);
  BOOST_TEST(x.grad().defined());
}

// GT-11
BOOST_AUTO_TEST_CASE(run_libtorchs_callbacks_at_their_end_whatever_thread_queued_them) {
  threads some(2);
  told out;
  std::atomic<int> elsewhere{0};
  const auto owner = std::this_thread::get_id();
  for (int round = 0; round < 50 || (elsewhere == 0 && round < 5000); ++round) {
    std::atomic<int> queued{0};
    int called = 0;
    std::vector<at::Tensor> parts;
    for (std::uint64_t i = 0; i < 6; ++i) {
      auto part = attach_recv({troupe::node_id{1}, 1}, message(i + 1), {at::linspace(0, 1, 64)}, {true})[0];
      for (int depth = 0; depth < 3; ++depth) {
        part = part.sin();
        part.register_hook([&](const at::Tensor& gradient) {
          ++queued;
          elsewhere += std::this_thread::get_id() != owner ? 1 : 0;
          torch::autograd::Engine::get_default_engine().queue_callback([&] { called += queued == 18 ? 1 : 0; });
          return gradient;
        });
      }
      parts.push_back(part);
    }
    graph_task_settings settings;
    settings.roots = {torch::autograd::impl::gradient_edge(at::stack(parts).sum())};
    settings.root_gradients = {at::ones({})};
    settings.emit_to = &out;
    settings.workers = &some;
    graph_task task(std::move(settings));
    task.run();
    BOOST_TEST(called == 18);
  }
  BOOST_TEST(elsewhere > 0);
}

// GT-12: the function that gives a leaf its gradient may run on a worker while the thread of the pass is in another function.
BOOST_AUTO_TEST_CASE(begin_a_function_with_a_hook_when_the_gradients_before_it_are_in_the_table) {
  threads some(2);
  told out;
  std::atomic<int> early{0};
  std::atomic<int> elsewhere{0};
  for (int round = 0; round < 300; ++round) {
    std::mutex mutex;
    gradient_table leaves;
    std::vector<at::Tensor> factors;
    std::vector<at::Tensor> parts;
    const auto owner = std::this_thread::get_id();
    for (std::uint64_t i = 0; i < 4; ++i) {
      auto part = attach_recv({troupe::node_id{1}, 1}, message(i + 1), {at::linspace(0, 1, 64)}, {true})[0];
      for (int depth = 0; depth < 4; ++depth) {
        const auto factor = factors.emplace_back(at::linspace(1, 2, 64).requires_grad_());
        part = part.sin();
        part.register_hook([&, factor, owner](const at::Tensor& gradient) {
          elsewhere += std::this_thread::get_id() != owner ? 1 : 0;
          const std::lock_guard lock(mutex);
          early += leaves.find(factor).defined() ? 0 : 1;
          return gradient;
        });
        part = part * factor;
      }
      parts.push_back(part);
    }
    graph_task_settings settings;
    settings.roots = {torch::autograd::impl::gradient_edge(at::stack(parts).sum())};
    settings.root_gradients = {at::ones({})};
    settings.emit_to = &out;
    settings.leaves = &leaves;
    settings.leaves_mutex = &mutex;
    settings.workers = &some;
    graph_task task(std::move(settings));
    task.run();
    BOOST_TEST(leaves.size() == factors.size());
  }
  BOOST_TEST(early == 0);
  BOOST_TEST(elsewhere > 0);
}

// A send has no function to run, so no worker gets it.
BOOST_AUTO_TEST_CASE(hand_the_gradients_of_a_send_on_although_sends_seem_to_take_long) {
  threads some(2);
  const auto leaf = at::linspace(0, 1, 64).requires_grad_();
  gradient_table leaves;
  graph_task_settings settings;
  settings.leaves = &leaves;
  settings.sends.push_back({attach_send(message(1), {leaf.sin()}), 0});
  some.costs().note(cost_book::kind_of(*settings.sends.front().function, {}), 1'000'000'000);
  graph_task task(std::move(settings));
  task.use_workers(&some);
  task.deliver(0, {at::ones({64})});
  task.run();
  BOOST_TEST(task.finished());
  BOOST_TEST(at::equal(leaves.find(leaf), leaf.detach().cos()));
}

BOOST_AUTO_TEST_SUITE_END()
