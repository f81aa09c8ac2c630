// SPDX-License-Identifier: BSD-3-Clause
#include <memory>
#include <string>

#include <ATen/ATen.h>
#include <boost/test/unit_test.hpp>
#include <torch/csrc/autograd/anomaly_mode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <troupe/engine/backward.hpp>
#include <troupe/engine/gradient_table.hpp>
#include <troupe/engine/graph_task.hpp>

#include "engine/oracle.hpp"

using namespace troupe::test;
using torch::autograd::variable_list;

namespace {

using journal = std::shared_ptr<std::vector<std::string>>;

struct note_before final : torch::autograd::FunctionPreHook {
  note_before(journal notes, std::string text) : notes(std::move(notes)), text(std::move(text)) {}
  variable_list operator()(const variable_list& gradients) override {
    notes->push_back(text);
    return gradients;
  }
  journal notes;
  std::string text;
};

struct note_after final : torch::autograd::FunctionPostHook {
  note_after(journal notes, std::string text) : notes(std::move(notes)), text(std::move(text)) {}
  variable_list operator()(const variable_list& outputs, const variable_list& inputs) override {
    notes->push_back(text + " " + std::to_string(outputs.size()) + " outputs, " + std::to_string(inputs.size()) + " inputs");
    return outputs;
  }
  journal notes;
  std::string text;
};

struct note_accumulated final : torch::autograd::PostAccumulateGradHook {
  explicit note_accumulated(journal notes) : notes(std::move(notes)) {}
  void operator()(const at::Tensor& leaf) override {
    notes->push_back(leaf.grad().defined() ? "accumulated" : "accumulated nothing");
  }
  journal notes;
};

// A graph with every kind of hook; what they saw, in order.
template <class Pass>
std::pair<std::vector<std::string>, at::Tensor> notes_of(Pass pass) {
  const auto notes = std::make_shared<std::vector<std::string>>();
  const auto x = at::full({2}, 3.0).requires_grad_();
  const auto y = x * 2;
  y.register_hook([notes](const at::Tensor& gradient) {
    notes->push_back("tensor hook of y");
    return gradient * 10;
  });
  y.retain_grad();
  y.grad_fn()->add_pre_hook(std::make_unique<note_before>(notes, "before y"));
  y.grad_fn()->add_post_hook(std::make_unique<note_after>(notes, "after y:"));
  x.register_hook([notes](const at::Tensor& gradient) {
    notes->push_back("tensor hook of x");
    return gradient + 1;
  });
  const auto accumulator = torch::autograd::impl::grad_accumulator(x);
  accumulator->add_pre_hook(std::make_unique<note_before>(notes, "before x"));
  accumulator->add_post_hook(std::make_unique<note_after>(notes, "after x:"));
  torch::autograd::impl::set_post_acc_grad_hooks(x, std::make_unique<note_accumulated>(notes));
  pass(y.sum(), x);
  notes->push_back("y kept " + std::to_string(y.grad().defined() ? y.grad()[0].item<float>() : -1));
  return {*notes, x.grad()};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(hooks)

BOOST_AUTO_TEST_CASE(run_in_libtorchs_order_and_see_what_libtorch_shows_them) {
  const auto [ours, our_gradient] = notes_of([](const at::Tensor& loss, auto&) { troupe::backward({loss}); });
  const auto [theirs, their_gradient] = notes_of([](const at::Tensor& loss, auto&) { torch::autograd::backward({loss}, {}); });
  BOOST_TEST(ours == theirs, boost::test_tools::per_element());
  BOOST_TEST(ours.size() == 8u);
  BOOST_TEST(difference(our_gradient, their_gradient) == "");
}

BOOST_AUTO_TEST_CASE(of_a_captured_input_run_as_in_libtorch) {
  const auto [ours, none] = notes_of([](const at::Tensor& loss, const at::Tensor& x) {
    BOOST_TEST(troupe::grad({loss}, {x})[0][0].item<float>() == 21);
  });
  const auto [theirs, nothing] = notes_of([](const at::Tensor& loss, const at::Tensor& x) {
    BOOST_TEST(torch::autograd::grad({loss}, {x})[0][0].item<float>() == 21);
  });
  BOOST_TEST(ours == theirs, boost::test_tools::per_element());
}

// EV-1
BOOST_AUTO_TEST_CASE(of_a_leaf_run_when_its_gradient_goes_to_a_table) {
  troupe::engine::gradient_table table;
  at::Tensor found;
  const auto [notes, gradient] = notes_of([&](const at::Tensor& loss, const at::Tensor& x) {
    troupe::engine::graph_task_settings settings;
    settings.roots = {torch::autograd::impl::gradient_edge(loss)};
    settings.root_gradients = {at::ones({})};
    settings.leaves = &table;
    troupe::engine::graph_task(std::move(settings)).run();
    found = table.find(x);
  });
  BOOST_TEST(!gradient.defined());
  BOOST_TEST(found[0].item<float>() == 21);
  BOOST_TEST(notes == (std::vector<std::string>{"tensor hook of y", "before y", "after y: 1 outputs, 1 inputs", "tensor hook of x",
                                                "before x", "after x: 0 outputs, 1 inputs", "y kept 10.000000"}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(an_exception_of_a_hook_comes_out_as_it_is) {
  struct mishap {};
  const auto x = at::ones({2}).requires_grad_();
  const auto y = x * 2;
  y.register_hook([](const at::Tensor& gradient) -> at::Tensor {
    if (gradient.defined()) {
      throw mishap{};
    }
    return gradient;
  });
  BOOST_CHECK_THROW(troupe::backward({y.sum()}), mishap);
  BOOST_TEST(!x.grad().defined());
}

BOOST_AUTO_TEST_CASE(anomaly_mode_names_the_function_that_made_a_nan) {
  const auto pass = [] {
    const torch::autograd::DetectAnomalyGuard detect;
    const auto x = at::zeros({2}).requires_grad_();
    troupe::backward({(x.sqrt() * 0).sum()});
  };
  BOOST_CHECK_EXCEPTION(pass(), c10::Error, [](const c10::Error& error) {
    return std::string(error.what()).find("Function 'SqrtBackward0' returned nan values in its 0th output") != std::string::npos;
  });
}

BOOST_AUTO_TEST_SUITE_END()
