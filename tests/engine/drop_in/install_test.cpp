// SPDX-License-Identifier: BSD-3-Clause
#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/csrc/autograd/variable.h>
#include <boost/test/unit_test.hpp>

#include <troupe/engine/backward.hpp>
#include <troupe/engine/drop_in/substitute.hpp>
#include <troupe/engine/torch_compat.hpp>

#include "engine/drop_in/both_engines.hpp"
#include "engine/oracle.hpp"

using namespace troupe::test;
using torch::autograd::variable_list;

BOOST_AUTO_TEST_SUITE(drop_in_install)

namespace {

at::Tensor leaf(at::IntArrayRef shape) { return at::randn(shape).requires_grad_(); }

/// True if a pass of libtorch's API runs on troupe's engine now.
bool passes_are_troupes() {
  bool inside = false;
  const auto x = leaf({1});
  x.register_hook([&](const at::Tensor&) { inside = inside_troupe(); });
  torch::autograd::backward({x * 2});
  return inside;
}

}  // namespace

BOOST_AUTO_TEST_CASE(passes_run_on_troupe_from_install_to_uninstall) {
  BOOST_TEST(!passes_are_troupes());
  troupe::install_engine();
  BOOST_TEST(passes_are_troupes());
  troupe::install_engine();
  BOOST_TEST(passes_are_troupes());
  troupe::uninstall_engine();
  BOOST_TEST(!passes_are_troupes());
  troupe::uninstall_engine();
  BOOST_TEST(!passes_are_troupes());
  const installed again;
  BOOST_TEST(passes_are_troupes());
}

BOOST_AUTO_TEST_CASE(a_pass_finishes_on_the_engine_it_began_on) {
  const auto x = leaf({3});
  std::vector<bool> inside;
  const auto note = [&](const at::Tensor&) { inside.push_back(inside_troupe()); };
  const auto y = x * 2;
  y.register_hook(note);
  y.register_hook([](const at::Tensor&) { troupe::uninstall_engine(); });
  x.register_hook(note);
  troupe::install_engine();
  torch::autograd::backward({y.sum()}, {}, true);
  torch::autograd::backward({y.sum()});
  BOOST_TEST(inside == (std::vector<bool>{true, true, false, false}));
}

#if TROUPE_TORCH_HAS_GRADIENT_BUFFERS
BOOST_AUTO_TEST_CASE(a_function_that_asks_for_buffers_of_its_gradients_finds_none) {  // IE-3
  struct asking : torch::autograd::Node {
    using Node::Node;
    variable_list apply(variable_list&& gradients) override {
      const auto buffers = torch::autograd::get_current_input_grad_buffers(this);
      finds.push_back(buffers.at(0).defined());
      return gradients;
    }
    std::vector<bool> finds;
  };
  const auto x = leaf({3});
  const auto function = troupe::engine::make_node<asking>(torch::autograd::edge_list{torch::autograd::impl::gradient_edge(x)});
  at::Tensor asked = x.detach();
  torch::autograd::create_gradient_edge(asked, function);
  const auto loss = (asked + x * 7).sum();
  const auto backward = [&] { torch::autograd::backward({loss}, {}, true); };
  backward();
  for (int round = 0; round < 2; ++round) {
    const installed engine;
    backward();
  }
  backward();
  BOOST_TEST(function->finds == (std::vector<bool>{true, false, false, true}));
  BOOST_TEST(at::equal(x.grad(), at::full({3}, 32.0)));
}
#endif

BOOST_AUTO_TEST_CASE(gradients_have_libtorchs_bits_and_strides) {
  const auto x = leaf({3, 4});
  const auto w = leaf({4, 2});
  const auto loss = (at::mm(x, w).tanh() * 3).sum() + x.pow(2).sum() + x.t().exp().sum();
  const auto run = [&] {
    clear_gradients({x, w});
    torch::autograd::backward({loss}, {}, true);
    return gradients_of({x, w});
  };
  const auto expected = run();
  const installed engine;
  BOOST_TEST(difference(run(), expected) == "");
}

BOOST_AUTO_TEST_CASE(grad_returns_what_libtorch_returns) {
  const auto x = leaf({3, 4});
  const auto unused = leaf({2});
  const auto y = x.exp();
  const auto run = [&] { return torch::autograd::grad({(y * y).sum(), y.sum()}, {x, y, unused}, {}, true, false, true); };
  const auto expected = run();
  const installed engine;
  BOOST_TEST(difference(run(), expected) == "");
  BOOST_TEST(!expected[2].defined());
  BOOST_TEST(!x.grad().defined());
}

BOOST_AUTO_TEST_CASE(only_the_inputs_that_are_named_get_gradients) {
  const auto x = leaf({3});
  const auto y = leaf({3});
  const auto product = x * y;
  const installed engine;
  torch::autograd::backward({product.sum()}, {}, false, false, {x});
  BOOST_TEST(at::equal(x.grad(), y.detach()));
  BOOST_TEST(!y.grad().defined());
}

BOOST_AUTO_TEST_CASE(gradients_of_gradients_have_libtorchs_bits) {
  const auto x = leaf({4});
  const auto twice = [&] {
    const auto first = torch::autograd::grad({x.pow(3).sum() * x.exp().sum()}, {x}, {}, true, true)[0];
    clear_gradients({x});
    torch::autograd::backward({first.pow(2).sum()}, {}, true, true);
    return torch::autograd::grad({x.grad().sum()}, {x})[0];
  };
  const auto expected = twice();
  const installed engine;
  BOOST_TEST(difference(twice(), expected) == "");
}

BOOST_AUTO_TEST_CASE(functions_run_in_libtorchs_order) {
  const auto run = [] {
    at::manual_seed(3);
    const auto x = leaf({3, 3});
    const auto y = (x.exp() * x.sin()).matmul(x) + x.sum(0);
    const auto order = std::make_shared<std::vector<std::size_t>>();
    record_order({y}, order);
    torch::autograd::backward({y, x}, {at::ones({3, 3}), at::ones({3, 3})});
    std::vector<std::string> text;
    for (const std::size_t each : *order) text.push_back(std::to_string(each));
    return text;
  };
  const auto found = on_both(run);
  BOOST_TEST(found.libtorch.size() > 6u);
  BOOST_TEST(found.troupe == found.libtorch, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(passes_of_troupes_own_functions_are_not_counted) {
  const installed engine;
  const auto before = troupe::engine::passes_so_far();
  const auto x = leaf({2});
  troupe::grad({(x * leaf({2})).sum()}, {x});
  const auto after = troupe::engine::passes_so_far();
  BOOST_TEST(after.troupe == before.troupe);
  BOOST_TEST(after.libtorch == before.libtorch);
}

BOOST_AUTO_TEST_CASE(a_pass_without_roots_is_no_work) {
  const installed engine;
  BOOST_CHECK_NO_THROW(torch::autograd::backward({}));
}

BOOST_AUTO_TEST_SUITE_END()
