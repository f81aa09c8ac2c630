// SPDX-License-Identifier: BSD-3-Clause
#include "apps/charlm/split_backward.hpp"

#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ATen/Parallel.h>
#include <torch/torch.h>

#include "apps/charlm/gradient_check.hpp"

using namespace troupe::apps::charlm;
using troupe::named_tensors;

BOOST_AUTO_TEST_SUITE(a_backward_in_two_parts)

namespace {

std::shared_ptr<stage_turns::micro_batch> a_micro_batch() {
  auto turns = std::make_shared<stage_turns>(schedule::zero_bubble, stage_position{});
  auto result = std::make_shared<stage_turns::micro_batch>(std::move(turns), 0);
  result->ask(stage_work::forward).get();
  return result;
}

at::Tensor leaf(at::IntArrayRef shape, std::uint64_t seed) {
  return at::randn(shape, at::make_generator<at::CPUGeneratorImpl>(seed)).requires_grad_();
}

/// The output and the gradients of two linear layers with an activation between them.
named_tensors gradients(at::IntArrayRef rows, std::int64_t width, const linear_function& linear,
                        const std::shared_ptr<stage_turns::micro_batch>& turns) {
  auto shape = rows.vec();
  shape.push_back(width);
  named_tensors all{{"x", leaf(shape, 1)},
                    {"w1", leaf({4 * width, width}, 2)},
                    {"b1", leaf({4 * width}, 3)},
                    {"w2", leaf({width, 4 * width}, 4)},
                    {"b2", leaf({width}, 5)}};
  const auto wide = linear(all[0].second, all[1].second, all[2].second);
  auto output = linear(at::gelu(wide, "tanh"), all[3].second, all[4].second);
  if (turns) {
    output = with_turns(output, turns);
    turns->end(stage_work::forward);
  }
  torch::autograd::backward({output}, {leaf(output.sizes(), 6).detach()});
  named_tensors result{{"output", output.detach()}};
  for (const auto& [name, tensor] : all) result.emplace_back(name, tensor.grad());
  return result;
}

}  // namespace

BOOST_AUTO_TEST_CASE(all_gradients_have_the_bits_of_at_linear) {  // LZ-2
  at::set_num_threads(1);
  const std::vector<std::vector<std::int64_t>> shapes{{8, 64}, {1, 1}, {3, 7}, {1, 64}, {37, 1}};
  for (const auto& rows : shapes)
    for (const std::int64_t width : {1, 5, 16, 128})
      BOOST_TEST_CONTEXT("rows " << rows[0] << " x " << rows[1] << ", width " << width) {
        const auto turns = a_micro_batch();
        const auto split = [&](const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
          return split_linear(x, weight, bias, turns);
        };
        const auto difference =
          first_difference(gradients(rows, width, split, turns), gradients(rows, width, whole_linear, nullptr));
        BOOST_TEST(!difference.has_value(), difference.value_or(""));
      }
}

BOOST_AUTO_TEST_CASE(gradients_of_weights_come_after_that_of_the_input) {  // LZ-1
  const auto turns = a_micro_batch();
  const auto x = leaf({2, 3, 4}, 1), first = leaf({4, 4}, 2), second = leaf({4, 4}, 3), bias = leaf({4}, 4);
  std::vector<std::string> order;
  const auto note = [&order](const at::Tensor& of, const std::string& name) {
    of.register_hook([&order, name](const at::Tensor&) { order.push_back(name); });
  };
  note(x, "x");
  note(first, "first");
  note(second, "second");
  const auto output = with_turns(split_linear(split_linear(x, first, bias, turns), second, bias, turns), turns);
  turns->end(stage_work::forward);
  torch::autograd::backward({output.sum()}, {});
  BOOST_REQUIRE(order.size() == 3U);
  BOOST_TEST(order[0] == "x");
}

BOOST_AUTO_TEST_SUITE_END()
