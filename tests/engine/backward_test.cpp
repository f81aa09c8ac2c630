// SPDX-License-Identifier: BSD-3-Clause
#include <memory>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <boost/test/unit_test.hpp>

#include <troupe/engine/backward.hpp>

#include "engine/oracle.hpp"
#include "support/contains.hpp"

using namespace troupe::test;

BOOST_AUTO_TEST_SUITE(backward_and_grad)

namespace {

at::Tensor leaf(at::IntArrayRef shape) { return at::randn(shape).requires_grad_(); }

template <class Pass>
std::string error_of(Pass pass) {
  try {
    pass();
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
  return "";
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_small_expression_has_libtorchs_gradients) {
  const auto x = leaf({3, 4});
  const auto w = leaf({4, 2});
  const auto loss = (at::mm(x, w).tanh() * 3).sum() + x.pow(2).sum();
  torch::autograd::backward({loss}, {}, true);
  const std::vector<at::Tensor> expected{x.grad().clone(), w.grad().clone()};
  clear_gradients({x, w});
  troupe::backward({loss});
  BOOST_TEST(difference(gradients_of({x, w}), expected) == "");
}

BOOST_AUTO_TEST_CASE(a_second_pass_adds_to_the_gradients) {
  const auto x = leaf({3});
  const auto loss = (x * x).sum();
  troupe::backward({loss}, {}, true);
  troupe::backward({loss});
  BOOST_TEST(at::equal(x.grad(), 4 * x.detach()));
}

BOOST_AUTO_TEST_CASE(a_second_pass_over_a_freed_graph_gets_libtorchs_error) {
  const auto x = leaf({3});
  const auto loss = x.exp().sum();
  troupe::backward({loss});
  BOOST_TEST(contains(error_of([&] { troupe::backward({loss}); }), "Trying to backward through the graph a second time"));
}

BOOST_AUTO_TEST_CASE(a_leaf_can_be_a_root) {
  const auto x = leaf({2});
  const auto gradient = at::randn({2});
  troupe::backward({x}, {gradient});
  BOOST_TEST(at::equal(x.grad(), gradient));
  BOOST_TEST(!x.grad().is_alias_of(gradient));
}

BOOST_AUTO_TEST_CASE(the_same_root_twice_counts_twice) {
  const auto x = leaf({});
  const auto y = x * 3;
  troupe::backward({y, y, x});
  BOOST_TEST(x.grad().item<float>() == 7);
}

BOOST_AUTO_TEST_CASE(no_roots_are_no_work) { BOOST_CHECK_NO_THROW(troupe::backward({})); }

BOOST_AUTO_TEST_CASE(only_the_inputs_that_are_named_get_gradients) {
  const auto x = leaf({3});
  const auto y = leaf({3});
  const auto product = x * y;
  troupe::backward({product.sum()}, {}, false, false, {x, product});
  BOOST_TEST(at::equal(x.grad(), y.detach()));
  BOOST_TEST(!y.grad().defined());
  BOOST_TEST(at::equal(product.grad(), at::ones({3})));
}

BOOST_AUTO_TEST_CASE(inputs_may_be_leaves_values_roots_and_given_twice) {
  const auto x = leaf({3});
  const auto y = leaf({3});
  const auto unused = leaf({2});
  const auto inside = x * y;
  const auto other = inside.exp();
  const auto root = (other * x).sum();
  const std::vector<at::Tensor> inputs{inside, x, root, other, inside, unused, y};
  const auto ours = troupe::grad({root}, inputs, {}, true, false, true);
  const auto theirs = torch::autograd::grad({root}, inputs, {}, true, false, true);
  BOOST_TEST(difference(ours, theirs) == "");
  BOOST_TEST(ours[4].defined());
  BOOST_TEST(!ours[5].defined());
}

BOOST_AUTO_TEST_CASE(inputs_may_be_several_outputs_of_one_function) {
  const auto x = leaf({4, 3});
  const auto parts = x.unbind(0);
  const auto root = (parts[0] * parts[2]).sum();
  const auto ours = troupe::grad({root}, {parts[2], parts[0], parts[1]}, {}, true, false, true);
  BOOST_TEST(difference(ours, torch::autograd::grad({root}, {parts[2], parts[0], parts[1]}, {}, true, false, true)) == "");
  BOOST_TEST(!ours[1].is_same(ours[0]));
}

BOOST_AUTO_TEST_CASE(only_functions_on_a_way_to_an_input_run) {
  const auto x = leaf({3});
  const auto y = leaf({3});
  const auto before = x.sin();
  const auto inside = y * 2;
  const auto root = (before + inside).sum();
  const auto run = [&](auto&& pass) {
    const auto order = std::make_shared<std::vector<std::size_t>>();
    record_order({root}, order);
    pass();
    return *order;
  };
  const auto theirs = run([&] { torch::autograd::grad({root}, {inside}, {}, true); });
  const auto ours = run([&] { troupe::grad({root}, {inside}, {}, true); });
  BOOST_TEST(theirs.size() == 2u);  // the sum and the addition
  BOOST_TEST(ours == theirs, boost::test_tools::per_element());
  const auto all = run([&] { troupe::backward({root}, {}, true); });
  BOOST_TEST(all.size() == 6u);
}

BOOST_AUTO_TEST_CASE(the_hooks_of_a_lone_root_run_although_nothing_leads_to_an_input) {
  const auto x = leaf({3});
  const auto unused = leaf({3}) * 2;
  const auto calls_in = [&](auto&& grad, std::size_t roots) {
    std::vector<at::Tensor> all;
    const auto calls = std::make_shared<int>(0);
    for (std::size_t i = 0; i < roots; ++i) {
      all.push_back(x.sum());
      all.back().retain_grad();
      all.back().register_hook([calls](const at::Tensor& gradient) { return ++*calls, gradient; });
    }
    BOOST_TEST(!grad(all)[0].defined());
    return std::pair(*calls, all.front().grad().defined());
  };
  const auto ours = [&](auto& roots) { return troupe::grad(roots, {unused}, {}, false, false, true); };
  const auto theirs = [&](auto& roots) { return torch::autograd::grad(roots, {unused}, {}, false, false, true); };
  for (const std::size_t roots : {1, 2}) {
    BOOST_TEST((calls_in(ours, roots) == calls_in(theirs, roots)));
    BOOST_TEST(calls_in(ours, roots).first == (roots == 1 ? 1 : 0));
  }
}

BOOST_AUTO_TEST_CASE(gradients_of_gradients_have_libtorchs_bits) {
  const auto x = leaf({4});
  const auto twice = [&](auto&& grad) {
    const auto first = grad(x.pow(3).sum() * x.exp().sum());
    const auto second = grad(first.pow(2).sum());
    return grad(second.sum());
  };
  const auto ours = twice([&](const at::Tensor& y) { return troupe::grad({y}, {x}, {}, true, true)[0]; });
  const auto theirs = twice([&](const at::Tensor& y) { return torch::autograd::grad({y}, {x}, {}, true, true)[0]; });
  BOOST_TEST(difference(ours.detach(), theirs.detach()) == "");
}

BOOST_AUTO_TEST_CASE(grad_leaves_grad_alone) {
  const auto x = leaf({4});
  troupe::grad({x.sin().sum()}, {x});
  BOOST_TEST(!x.grad().defined());
}

BOOST_AUTO_TEST_CASE(an_unused_input_is_an_error_or_undefined) {
  const auto x = leaf({4});
  const auto unused = leaf({2, 2});
  const auto loss = x.sum();
  const std::string text = error_of([&] { troupe::grad({loss}, {x, unused}, {}, true); });
  BOOST_TEST(contains(text, "input 1 of grad() (shape [2, 2]) was not used"));
  const auto found = troupe::grad({loss}, {x, unused}, {}, true, false, true);
  BOOST_TEST(at::equal(found[0], at::ones({4})));
  BOOST_TEST(!found[1].defined());
}

BOOST_AUTO_TEST_CASE(misuse_says_what_was_expected) {
  const auto x = leaf({2, 3});
  const auto y = x * 2;
  BOOST_TEST(contains(error_of([&] { troupe::backward({y}); }), "root 0 has shape [2, 3] and no gradient; only a scalar root"));
  BOOST_TEST(contains(error_of([&] { troupe::backward({y.detach()}); }),
                      "root 0 of the backward pass (shape [2, 3]) does not require grad"));
  BOOST_TEST(
    contains(error_of([&] { troupe::backward({at::Tensor()}); }), "root 0 of the backward pass is an undefined tensor"));
  BOOST_TEST(contains(error_of([&] { troupe::backward({y, y}, {at::ones({2, 3})}); }), "2 roots, but 1 gradients"));
  BOOST_TEST(
    contains(error_of([&] { troupe::backward({y}, {at::ones({4})}); }),
             "the gradient of a root is an invalid gradient at index 0 - got [4] but expected shape compatible with [2, 3]"));
  BOOST_TEST(contains(error_of([&] {
                        troupe::backward({y}, {at::ones({2, 3}, at::kComplexFloat)});
                      }),
                      "either both are complex"));
  BOOST_TEST(contains(error_of([&] { troupe::backward({y.sum()}, {}, false, false, {x.detach()}); }),
                      "input 0 of the pass does not require grad"));
  BOOST_TEST(contains(error_of([&] { troupe::grad({y.sum()}, {}); }), "grad() needs at least one input"));
}

BOOST_AUTO_TEST_CASE(grad_mode_inside_a_pass_is_create_graph_and_is_restored) {
  const auto x = leaf({2});
  std::vector<bool> seen;
  const auto y = x * 2;
  y.register_hook([&](const at::Tensor&) { seen.push_back(c10::GradMode::is_enabled()); });
  troupe::backward({y.sum()}, {}, true);
  BOOST_TEST(c10::GradMode::is_enabled());
  {
    const c10::AutoGradMode off(false);
    troupe::backward({y.detach().requires_grad_()}, {at::ones({2})});
    BOOST_TEST(!c10::GradMode::is_enabled());
  }
  troupe::grad({y.sum()}, {x}, {}, true, true);
  BOOST_TEST(seen == (std::vector<bool>{false, true}));
}

BOOST_AUTO_TEST_CASE(a_gradient_that_is_ours_alone_is_not_copied) {
  const auto x = leaf({1000});
  const void* seen = nullptr;
  x.register_hook([&](const at::Tensor& gradient) { seen = gradient.data_ptr(); });
  troupe::backward({(x * 2).sum()});
  BOOST_TEST(x.grad().data_ptr() == seen);
}

BOOST_AUTO_TEST_SUITE_END()
