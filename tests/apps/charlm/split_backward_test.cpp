// SPDX-License-Identifier: BSD-3-Clause
#include "apps/charlm/split_backward.hpp"

#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <ATen/Parallel.h>
#include <torch/torch.h>

#include <troupe/engine/backward.hpp>

#include "apps/charlm/gradient_check.hpp"

#include "engine/threads.hpp"

using namespace troupe::apps::charlm;
using troupe::named_tensors;

BOOST_AUTO_TEST_SUITE(a_backward_in_two_parts)

namespace {

using turns_ptr = std::shared_ptr<stage_turns::micro_batch>;

turns_ptr a_micro_batch() {
  auto turns = std::make_shared<stage_turns>(schedule::zero_bubble, stage_position{});
  auto result = std::make_shared<stage_turns::micro_batch>(std::move(turns), 0);
  result->ask(stage_work::forward).get();
  return result;
}

at::Tensor leaf(at::IntArrayRef shape, std::uint64_t seed) {
  return at::randn(shape, at::make_generator<at::CPUGeneratorImpl>(seed)).requires_grad_();
}

/// The output and the gradients of two linear layers with an activation between them. Without turns: of at::linear.
named_tensors gradients(at::IntArrayRef rows, std::int64_t width, const turns_ptr& turns) {
  auto shape = rows.vec();
  shape.push_back(width);
  named_tensors all{{"x", leaf(shape, 1)},
                    {"w1", leaf({4 * width, width}, 2)},
                    {"b1", leaf({4 * width}, 3)},
                    {"w2", leaf({width, 4 * width}, 4)},
                    {"b2", leaf({width}, 5)}};
  split_backward backward(turns);
  const auto linear = [&](const at::Tensor& x, std::size_t weight) {
    const auto& [w, b] = std::pair(all[weight].second, all[weight + 1].second);
    return turns ? backward.linear(x, w, b) : at::linear(x, w, b);
  };
  auto output = linear(at::gelu(linear(turns ? backward.enter({all[0].second})[0] : all[0].second, 1), "tanh"), 3);
  if (turns) {
    output = backward.leave(output);
    turns->end(stage_work::forward);
  }
  torch::autograd::backward({output}, {leaf(output.sizes(), 6).detach()});
  named_tensors result{{"output", output.detach()}};
  for (const auto& [name, tensor] : all) result.emplace_back(name, tensor.grad());
  return result;
}

/// A micro-batch's forward through some layers. Notes "input" when the gradient of the input is known, before the backward for
/// inputs ends, and "weights" when those of the weights of a layer are.
struct noted_layers {
  explicit noted_layers(turns_ptr of, std::size_t count) : turns(std::move(of)) {
    const auto note = [this](const at::Tensor& tensor, const char* name) {
      tensor.register_hook([this, name](const at::Tensor&) {
        const std::lock_guard lock(mutex);
        order.emplace_back(name);
      });
    };
    split_backward backward(turns);
    auto x = backward.enter({leaf({2, 3, 4}, 1)})[0];
    note(x, "input");
    for (std::size_t layer = 0; layer < count; ++layer) {
      note(weights.emplace_back(leaf({4, 4}, 2 + layer)), "weights");
      x = backward.linear(x, weights.back(), leaf({4}, 1));
    }
    output = backward.leave(x);
    turns->end(stage_work::forward);
  }

  void check_order() const {
    BOOST_TEST_REQUIRE(order.size() == weights.size() + 1);
    BOOST_TEST(order[0] == "input");
  }

  turns_ptr turns;
  std::vector<at::Tensor> weights;
  at::Tensor output;
  std::mutex mutex;
  std::vector<std::string> order;
};

}  // namespace

BOOST_AUTO_TEST_CASE(all_gradients_have_the_bits_of_at_linear) {  // LZ-2
  at::set_num_threads(1);
  const std::vector<std::vector<std::int64_t>> shapes{{8, 64}, {1, 1}, {3, 7}, {1, 64}, {37, 1}};
  for (const auto& rows : shapes)
    for (const std::int64_t width : {1, 5, 16, 128})
      BOOST_TEST_CONTEXT("rows " << rows[0] << " x " << rows[1] << ", width " << width) {
        const auto difference = first_difference(gradients(rows, width, a_micro_batch()), gradients(rows, width, nullptr));
        BOOST_TEST(!difference.has_value(), difference.value_or(""));
      }
}

BOOST_AUTO_TEST_CASE(gradients_of_weights_come_after_the_backward_for_inputs) {  // LZ-1
  noted_layers layers(a_micro_batch(), 3);
  torch::autograd::backward({layers.output.sum()}, {});
  layers.check_order();
}

// The workers run functions of both micro-batches at once.
BOOST_AUTO_TEST_CASE(micro_batches_share_workers_and_keep_their_order) {  // LZ-1
  troupe::test::threads workers(2);
  for (int round = 0; round < 100; ++round) {
    const auto of_stage = std::make_shared<stage_turns>(schedule::zero_bubble, stage_position{0, 2});
    std::deque<noted_layers> layers;
    std::vector<std::jthread> passes;
    for (std::int64_t number = 0; number < 2; ++number) {
      const auto turns = std::make_shared<stage_turns::micro_batch>(of_stage, number);
      BOOST_TEST_REQUIRE(turns->ask(stage_work::forward).ready());
      layers.emplace_back(turns, 6);
    }
    for (auto& each : layers)
      passes.emplace_back([&] { troupe::backward({each.output}, {at::ones_like(each.output)}, {.workers = &workers}); });
    passes.clear();
    for (const auto& each : layers) each.check_order();
  }
}

// LZ-3: the stage begins nothing else before all gradients of the tensors that enter are known.
BOOST_AUTO_TEST_CASE(a_backward_has_its_turn_from_its_begin_to_the_gradients_of_what_enters) {
  for (const bool from_tables : {false, true}) {
    const auto of_stage = std::make_shared<stage_turns>(schedule::gpipe, stage_position{0, 2});
    const auto turns = std::make_shared<stage_turns::micro_batch>(of_stage, 0);
    const auto next = std::make_shared<stage_turns::micro_batch>(of_stage, 1);
    turns->ask(stage_work::forward).get();
    split_backward backward(turns);
    std::vector<at::Tensor> tensors{leaf({3}, 1)};
    if (from_tables) tensors.push_back(leaf({3}, 2));
    const auto entered = backward.enter(tensors);
    auto output = entered[0] * 2;
    if (from_tables) output = output * entered[1];
    std::optional<troupe::future<troupe::done>> asked;
    output.register_hook([&](const at::Tensor&) { asked = next->ask(stage_work::forward); });
    std::vector<bool> ready;
    for (const auto& each : entered) each.register_hook([&](const at::Tensor&) { ready.push_back(asked->ready()); });
    for (const auto& each : tensors) each.register_hook([&](const at::Tensor&) { ready.push_back(asked->ready()); });
    output = backward.leave(output);
    turns->end(stage_work::forward);
    torch::autograd::backward({output.sum()}, {});
    BOOST_TEST((ready == (from_tables ? std::vector<bool>{false, false, true, true} : std::vector<bool>{false, true})));
  }
}

BOOST_AUTO_TEST_SUITE_END()
