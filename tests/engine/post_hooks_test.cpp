// SPDX-License-Identifier: BSD-3-Clause
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/csrc/autograd/variable.h>
#include <boost/test/unit_test.hpp>

#include <troupe/engine/torch_compat.hpp>

#include "engine/both_ways.hpp"
#include "engine/drop_in/both_engines.hpp"

using namespace troupe::test;
using torch::autograd::Node;
using torch::autograd::variable_list;
using torch::autograd::utils::LambdaPostHook;
using trace = std::vector<std::string>;

BOOST_AUTO_TEST_SUITE(post_hooks)

namespace {

std::string texts_of(const variable_list& tensors) {
  std::string text = std::to_string(tensors.size()) + ":";
  for (const at::Tensor& each : tensors) text += " " + (each.defined() ? text_of(each) : "undefined");
  return text;
}

/// A hook that records what it gets, and doubles the outputs.
std::unique_ptr<torch::autograd::FunctionPostHook> doubling(trace& notes, const std::string& name) {
  return std::make_unique<LambdaPostHook>([&notes, name](const variable_list& outputs, const variable_list& inputs) {
    notes.push_back(name + ", outputs " + texts_of(outputs) + ", inputs " + texts_of(inputs));
    variable_list twice;
    for (const at::Tensor& each : outputs) twice.push_back(each.defined() ? each * 2 : each);
    return twice;
  });
}

/// A tensor whose function has one output per tensor in `inputs` and calls `what`.
at::Tensor from_all(const std::vector<at::Tensor>& inputs, std::function<variable_list(variable_list)> what) {
  torch::autograd::edge_list edges;
  for (const at::Tensor& each : inputs) edges.push_back(torch::autograd::impl::gradient_edge(each));
  at::Tensor result = inputs[0].detach().clone();
  torch::autograd::impl::set_gradient_edge(result, {make_function("custom", std::move(what), inputs[0], std::move(edges)), 0});
  return result;
}

at::Tensor leaf() { return at::ones({2}).requires_grad_(); }

}  // namespace

// HK-2
BOOST_AUTO_TEST_CASE(that_a_function_adds_to_itself_while_it_runs_are_called) {
  for (const bool has_one_before : {false, true}) {
    const auto run = [&](const way& run_on) {
      trace notes;
      const auto x = leaf();
      Node* self = nullptr;
      const auto y = from_all({x}, [&](variable_list gradients) {
        self->add_post_hook(doubling(notes, "added"));
        return variable_list{gradients[0] * 3};
      });
      self = y.grad_fn().get();
      if (has_one_before) self->add_post_hook(doubling(notes, "before"));
      run_on.backward({y}, {at::ones({2})}, true);
      notes.push_back(text_of(x.grad()));
      return notes;
    };
    TROUPE_TEST_BOTH_WAYS(run, has_one_before ? 3 : 2);
  }
}

// HK-2
BOOST_AUTO_TEST_CASE(that_a_function_adds_to_itself_are_shown_no_inputs_though_it_only_reads_them) {
  struct reads_its_inputs final : Node {
    variable_list apply(variable_list&& inputs) override {
      add_post_hook(doubling(*notes, "added"));
      return {inputs[0] * 3};
    }
    trace* notes = nullptr;
  };
  const auto run = [](const way& run_on) {
    trace notes;
    const auto x = leaf();
    const auto function = troupe::engine::make_node<reads_its_inputs>();
    function->notes = &notes;
    function->set_next_edges({torch::autograd::impl::gradient_edge(x)});
    function->add_input_metadata(x);
    at::Tensor y = at::ones({2});
    torch::autograd::impl::set_gradient_edge(y, {function, 0});
    run_on.backward({y}, {at::ones({2})}, true);
    notes.push_back(text_of(x.grad()));
    return notes;
  };
  TROUPE_TEST_BOTH_WAYS(run, 2);
}

// HK-2
BOOST_AUTO_TEST_CASE(that_other_hooks_of_the_function_add_are_called) {
  const auto run = [](const way& run_on) {
    trace notes;
    const auto x = leaf();
    const auto y = from_all({x}, [](variable_list gradients) { return gradients; });
    y.register_hook([&](const at::Tensor&) { y.grad_fn()->add_post_hook(doubling(notes, "added by a tensor hook")); });
    x.register_hook([&](const at::Tensor&) {
      torch::autograd::impl::gradient_edge(x).function->add_post_hook(doubling(notes, "added to the leaf"));
    });
    run_on.backward({y}, {at::ones({2})}, true);
    notes.push_back(text_of(x.grad()));
    return notes;
  };
  TROUPE_TEST_BOTH_WAYS(run, 3);
}

// EV-2
BOOST_AUTO_TEST_CASE(of_a_trimmed_pass_see_all_that_the_function_returned) {
  const auto run = [](const way& run_on) {
    trace notes;
    const auto a = leaf();
    const auto b = at::ones({2, 1}, at::kDouble).requires_grad_();
    const auto y = from_all({a, b}, [](variable_list gradients) {
      return variable_list{gradients[0] * 3,
                           gradients[0].expand({2, 2}) * 5};  // the second output is summed to the shape and cast
    });
    y.grad_fn()->add_post_hook(doubling(notes, "hook"));
    notes.push_back(text_of(run_on.grad({y}, {a}, {at::ones({2})}, true)[0]));
    notes.push_back(text_of(run_on.grad({y}, {b}, {at::ones({2})}, true)[0]));
    run_on.backward({y}, {at::ones({2})}, true, false, {a});
    notes.push_back(text_of(a.grad()));
    notes.emplace_back(b.grad().defined() ? "defined" : "undefined");
    return notes;
  };
  TROUPE_TEST_BOTH_WAYS(run, 7);
}

BOOST_AUTO_TEST_CASE(of_a_trimmed_pass_are_not_shown_what_libtorchs_functions_leave_out) {
  const auto run = [](const way& run_on) {
    trace notes;
    const auto a = leaf();
    const auto b = leaf();
    const auto y = a * b;
    y.grad_fn()->add_post_hook(doubling(notes, "hook"));
    notes.push_back(text_of(run_on.grad({y}, {a}, {at::ones({2})}, true)[0]));
    return notes;
  };
  TROUPE_TEST_BOTH_WAYS(run, 2);
}

BOOST_AUTO_TEST_SUITE_END()
