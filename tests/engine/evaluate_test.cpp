// SPDX-License-Identifier: BSD-3-Clause
#include <functional>
#include <memory>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <boost/test/unit_test.hpp>

#include <troupe/engine/backward.hpp>
#include <troupe/engine/torch_compat.hpp>

using torch::autograd::variable_list;

BOOST_AUTO_TEST_SUITE(evaluation)

namespace {

using body = std::function<variable_list(variable_list)>;

struct scripted final : torch::autograd::Node {
  scripted(torch::autograd::edge_list next, body run) : Node(std::move(next)), run(std::move(run)) {}
  variable_list apply(variable_list&& gradients) override { return run(std::move(gradients)); }
  std::string name() const override { return "scripted"; }
  body run;
};

// A scalar that a function computes from the inputs. `run` is the backward of that function.
at::Tensor scripted_root(const std::vector<at::Tensor>& inputs, body run) {
  torch::autograd::edge_list edges;
  for (const at::Tensor& input : inputs) edges.push_back(torch::autograd::impl::gradient_edge(input));
  at::Tensor root = at::zeros({});
  torch::autograd::create_gradient_edge(root, troupe::engine::make_node<scripted>(std::move(edges), std::move(run)));
  return root;
}

at::Tensor leaf(at::IntArrayRef shape, at::ScalarType type = at::kFloat) { return at::zeros(shape, type).requires_grad_(); }

std::string text_of(const std::function<void()>& pass) {
  try {
    pass();
  } catch (const std::exception& error) {
    const std::string text = error.what();
    return text.substr(0, text.find('\n'));
  }
  return "no error";
}

void same_error(at::IntArrayRef shape, const body& run, const std::string& part) {
  const auto x = leaf(shape);
  const std::string ours = text_of([&] { troupe::backward({scripted_root({x}, run)}); });
  const std::string theirs = text_of([&] { torch::autograd::backward({scripted_root({x}, run)}, {}); });
  BOOST_TEST(ours == theirs);
  BOOST_TEST_INFO(ours);
  BOOST_TEST((ours.find(part) != std::string::npos));
}

}  // namespace

BOOST_AUTO_TEST_CASE(outputs_that_do_not_fit_get_libtorchs_error_with_the_functions_name) {
  same_error(
    {2, 3}, [](auto) { return variable_list{at::ones({4})}; },
    "Function scripted returned an invalid gradient at index 0 - got [4] but expected shape compatible with [2, 3]");
  same_error(
    {2},
    [](auto) {
      return variable_list{at::ones({2}), at::ones({2})};
    },
    "Function scripted returned an invalid number of gradients - expected 1, but got 2");
  same_error(
    {2}, [](auto) { return variable_list{}; }, "expected 1, but got 0");
  same_error(
    {2}, [](auto) { return variable_list{at::ones({2}, at::kComplexFloat)}; }, "");
}

BOOST_AUTO_TEST_CASE(outputs_that_can_be_made_to_fit_are) {
  const auto x = leaf({2, 3}, at::kDouble);
  troupe::backward({scripted_root({x}, [](auto) { return variable_list{at::ones({5, 2, 1}).expand({5, 2, 3})}; })});
  BOOST_TEST(x.grad().scalar_type() == at::kDouble);
  BOOST_TEST(at::equal(x.grad(), at::full({2, 3}, 5.0, at::kDouble)));
}

BOOST_AUTO_TEST_CASE(undefined_outputs_reach_the_next_function_undefined) {
  bool ran = false;
  const auto x = leaf({2});
  at::Tensor middle = scripted_root({x}, [&](variable_list gradients) {
    ran = !gradients.at(0).defined();
    return variable_list{at::Tensor()};
  });
  troupe::backward({scripted_root({middle}, [](auto) { return variable_list{at::Tensor()}; })});
  BOOST_TEST(ran);
  BOOST_TEST(!x.grad().defined());
}

// EV-2
BOOST_AUTO_TEST_CASE(an_output_that_nothing_takes_is_not_looked_at) {
  const auto x = leaf({2});
  const auto y = leaf({2});
  const auto root = scripted_root({x, y}, [](auto) { return variable_list{at::ones({2}), at::ones({7})}; });
  BOOST_TEST(at::equal(troupe::grad({root}, {x}, {}, true)[0], at::ones({2})));
  BOOST_TEST(text_of([&] { troupe::grad({root}, {y}, {}, true); }).find("invalid gradient at index 1") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_function_may_run_a_pass_of_its_own) {
  const auto x = at::full({2}, 3.0).requires_grad_();
  const auto root = scripted_root({x}, [](auto) {
    const c10::AutoGradMode on(true);
    const auto inner = at::full({2}, 5.0).requires_grad_();
    troupe::backward({inner.pow(2).sum()});
    return variable_list{inner.grad()};
  });
  troupe::backward({root + x.sum()});
  BOOST_TEST(at::equal(x.grad(), at::full({2}, 11.0)));
}

BOOST_AUTO_TEST_CASE(a_hook_that_changes_the_number_of_outputs_is_named) {
  struct shortener final : torch::autograd::FunctionPostHook {
    variable_list operator()(const variable_list&, const variable_list&) override { return {}; }
  };
  const auto x = leaf({2});
  const auto root = scripted_root({x}, [](auto) { return variable_list{at::ones({2})}; });
  root.grad_fn()->add_post_hook(std::make_unique<shortener>());
  BOOST_TEST(text_of([&] { troupe::backward({root}); }) ==
             "troupe: function scripted has 0 outputs after its hooks, but 1 edges");
}

BOOST_AUTO_TEST_SUITE_END()
