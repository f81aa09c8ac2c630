// SPDX-License-Identifier: BSD-3-Clause
#include <memory>
#include <string>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/csrc/autograd/variable.h>
#include <boost/test/unit_test.hpp>

#include <troupe/engine/backward.hpp>
#include <troupe/engine/gradient_table.hpp>
#include <troupe/engine/graph_task.hpp>

#include "engine/both_ways.hpp"
#include "engine/drop_in/both_engines.hpp"
#include "engine/oracle.hpp"

using namespace troupe::test;
using torch::autograd::variable_list;
using torch::autograd::utils::LambdaPostHook;

BOOST_AUTO_TEST_SUITE(hooks)

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

struct lambda_pre_hook final : torch::autograd::FunctionPreHook {
  explicit lambda_pre_hook(std::function<variable_list(const variable_list&)> call) : call(std::move(call)) {}
  variable_list operator()(const variable_list& gradients) override { return call(gradients); }
  std::function<variable_list(const variable_list&)> call;
};

struct after_accumulation final : torch::autograd::PostAccumulateGradHook {
  explicit after_accumulation(std::function<void(const at::Tensor&)> call) : call(std::move(call)) {}
  void operator()(const at::Tensor& leaf) override { call(leaf); }
  std::function<void(const at::Tensor&)> call;
};

// Runs a graph with every kind of hook. Returns what the hooks saw, in order.
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

BOOST_AUTO_TEST_CASE(run_in_libtorchs_order_and_see_what_libtorch_shows_them) {
  const auto [ours, our_gradient] = notes_of([](const at::Tensor& loss, auto&) { troupe::backward({loss}); });
  const auto [theirs, their_gradient] = notes_of([](const at::Tensor& loss, auto&) { torch::autograd::backward({loss}, {}); });
  BOOST_TEST(ours == theirs, boost::test_tools::per_element());
  BOOST_TEST(ours.size() == 8u);
  BOOST_TEST(difference(our_gradient, their_gradient) == "");
}

BOOST_AUTO_TEST_CASE(of_a_captured_input_run_as_in_libtorch) {
  const auto [ours, none] = notes_of(
    [](const at::Tensor& loss, const at::Tensor& x) { BOOST_TEST(troupe::grad({loss}, {x})[0][0].item<float>() == 21); });
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
  BOOST_TEST(
    notes == (std::vector<std::string>{"tensor hook of y", "before y", "after y: 1 outputs, 1 inputs", "tensor hook of x",
                                       "before x", "after x: 0 outputs, 1 inputs", "y kept 10.000000"}),
    boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(an_exception_of_a_hook_comes_out_as_it_is) {
  struct mishap {};
  const auto x = at::ones({2}).requires_grad_();
  const auto y = x * 2;
  y.register_hook([](const at::Tensor& gradient) -> at::Tensor {
    if (gradient.defined()) throw mishap{};
    return gradient;
  });
  BOOST_CHECK_THROW(troupe::backward({y.sum()}), mishap);
  BOOST_TEST(!x.grad().defined());
}

BOOST_AUTO_TEST_CASE(replace_gradients_in_libtorchs_order) {
  const auto run = [](const way& run_on) {
    const auto x = at::full({2}, 3.0).requires_grad_();
    const auto y = x * 2;
    y.register_hook([](const at::Tensor& gradient) { return gradient + 1; });
    y.register_hook([](const at::Tensor& gradient) { return gradient * 10; });
    y.register_hook([](const at::Tensor&) { return at::Tensor(); });  // undefined: the gradient stays
    y.retain_grad();
    y.grad_fn()->add_pre_hook(
      std::make_unique<lambda_pre_hook>([](const variable_list& all) { return variable_list{all[0] + 3}; }));
    y.grad_fn()->add_post_hook(std::make_unique<LambdaPostHook>(
      [](const variable_list& outputs, const variable_list& inputs) { return variable_list{outputs[0] + inputs[0]}; }));
    x.register_hook([](const at::Tensor& gradient) { return gradient / 7; });
    torch::autograd::impl::grad_accumulator(x)->add_pre_hook(
      std::make_unique<lambda_pre_hook>([](const variable_list& all) { return variable_list{all[0] - 1}; }));
    run_on.backward({y.sum()}, {}, true);
    std::vector<std::string> notes{text_of(y.grad()), text_of(x.grad())};
    notes.push_back(text_of(run_on.grad({y.sum()}, {y})[0]));
    return notes;
  };
  TROUPE_TEST_BOTH_WAYS(run, 3);
}

BOOST_AUTO_TEST_CASE(that_were_removed_do_not_run) {
  const auto run = [](const way& run_on) {
    std::vector<std::string> notes;
    const auto x = at::ones({2}).requires_grad_();
    const auto y = x * 2;
    const auto note = [&](const std::string& text) { return [&notes, text](const at::Tensor&) { notes.push_back(text); }; };
    y.register_hook(note("first"));
    const unsigned removed = y.register_hook(note("removed"));
    y.register_hook(note("last"));
    const auto function = y.grad_fn();
    const auto key = function->add_post_hook(std::make_unique<LambdaPostHook>([&](const variable_list& outputs, auto&) {
      notes.emplace_back("post-hook");
      return outputs;
    }));
    y.remove_hook(removed);
    run_on.backward({y.sum()}, {}, true);
    function->del_post_hook(key);
    run_on.backward({y.sum()}, {}, true);
    return notes;
  };
  TROUPE_TEST_BOTH_WAYS(run, 5);
}

// HK-1
BOOST_AUTO_TEST_CASE(may_remove_and_add_hooks_while_they_run) {
  std::vector<std::string> notes;
  const auto x = at::ones({2}).requires_grad_();
  const auto y = x * 2;
  const auto function = y.grad_fn();
  std::uintptr_t key = 0;
  const auto post = [&](std::string text, std::function<void()> what) {
    return function->add_post_hook(std::make_unique<LambdaPostHook>(
      [&notes, text = std::move(text), what = std::move(what)](const variable_list& outputs, const variable_list&) {
        notes.push_back(text);
        what();
        return outputs;
      }));
  };
  post("adds", [&] {
    for (int i = 0; i < 100; ++i) {  // moves the list of hooks to other memory
      post("added", [] {});
    }
  });
  post("removes", [&] { function->del_post_hook(key); });
  key = post("removed before its turn", [] {});
  post("stays", [] {});
  y.register_hook([&](const at::Tensor&) {
    notes.emplace_back("tensor hook");
    for (int i = 0; i < 100; ++i) {
      function->add_pre_hook(std::make_unique<lambda_pre_hook>([&](const variable_list& all) {
        notes.emplace_back("pre-hook added by a tensor hook");
        return all;
      }));
      function->add_tensor_pre_hook(std::make_unique<lambda_pre_hook>([&](const variable_list& all) {
        notes.emplace_back("added too late");
        return all;
      }));
    }
  });
  y.retain_grad();
  troupe::backward({y.sum()}, {}, true);
  std::vector<std::string> expected{"tensor hook"};
  expected.insert(expected.end(), 100, "pre-hook added by a tensor hook");
  expected.insert(expected.end(), {"adds", "removes", "stays"});
  BOOST_TEST(notes == expected, boost::test_tools::per_element());
  BOOST_TEST(y.grad().defined());
}

BOOST_AUTO_TEST_CASE(may_add_hooks_of_retained_gradients_while_those_run) {
  const auto x = at::ones({64}).requires_grad_();
  const auto parts = x.split(1);
  int ran = 0;
  struct retaining final : torch::autograd::FunctionPreHook {
    retaining(torch::autograd::Node& function, int& ran) : function(function), ran(ran) {}
    variable_list operator()(const variable_list& gradients) override {
      ++ran;
      for (std::size_t i = 1; i < 64; ++i)  // makes the map grow and rehash
        if (!function.retains_grad_hooks().contains(i))
          function.add_retains_grad_hook(std::make_unique<lambda_pre_hook>([](const variable_list& all) { return all; }), i);
      return gradients;
    }
    torch::autograd::Node& function;
    int& ran;
  };
  auto& function = *parts[0].grad_fn();
  function.add_retains_grad_hook(std::make_unique<retaining>(function, ran), 0);
  troupe::backward({parts[0].sum() + parts[63].sum()});
  BOOST_TEST(ran == 1);
  BOOST_TEST(x.grad().sum().item<float>() == 2);
}

BOOST_AUTO_TEST_CASE(of_every_kind_may_throw_and_leave_the_graph_usable) {
  for (const std::string kind : {"tensor", "retained", "pre", "post", "accumulated", "captured"}) {
    const auto run = [&](const way& run_on) {
      std::vector<std::string> notes;
      bool throws = true;
      const auto mishap = [&] {
        if (throws) throw std::runtime_error("from a hook");
      };
      const auto pre = [&] {
        return std::make_unique<lambda_pre_hook>([&](const variable_list& all) {
          mishap();
          return all;
        });
      };
      const auto x = at::ones({2}).requires_grad_();
      const auto y = x * 2;
      if (kind == "tensor")
        y.register_hook([&](const at::Tensor&) { mishap(); });
      else if (kind == "retained")
        y.grad_fn()->add_retains_grad_hook(pre(), 0);
      else if (kind == "pre")
        y.grad_fn()->add_pre_hook(pre());
      else if (kind == "post")
        y.grad_fn()->add_post_hook(std::make_unique<LambdaPostHook>([&](const variable_list& outputs, const variable_list&) {
          mishap();
          return outputs;
        }));
      else if (kind == "accumulated")
        torch::autograd::impl::set_post_acc_grad_hooks(
          x, std::make_unique<after_accumulation>([&](const at::Tensor&) { mishap(); }));
      else
        x.register_hook([&](const at::Tensor&) { mishap(); });
      const auto pass = [&] {
        if (kind == "captured")
          notes.push_back(text_of(run_on.grad({y.sum()}, {x}, {}, true)[0]));
        else
          run_on.backward({y.sum()}, {}, true);
      };
      notes.push_back(error_of(pass));
      throws = false;
      notes.push_back(error_of(pass));
      notes.push_back(text_of(x.grad()));
      return notes;
    };
    TROUPE_TEST_BOTH_WAYS(run, kind == "captured" ? 4 : 3);
    BOOST_TEST(run(way(true))[0] == "std: from a hook");
  }
}

BOOST_AUTO_TEST_CASE(of_captures_replace_what_is_captured_in_the_order_given) {
  const auto x = at::ones({2}).requires_grad_();
  const auto y = x * 2;
  troupe::engine::graph_task_settings settings;
  settings.roots = {torch::autograd::impl::gradient_edge(y.sum())};
  settings.root_gradients = {at::ones({})};
  settings.inputs = {torch::autograd::impl::gradient_edge(x), torch::autograd::impl::gradient_edge(y)};
  settings.capture = true;
  settings.capture_hooks = {{0, [](const at::Tensor& gradient) { return gradient + 1; }},
                            {0, [](const at::Tensor& gradient) { return gradient * 10; }}};
  troupe::engine::graph_task task(std::move(settings));
  task.run();
  const auto captures = task.take_captures();
  BOOST_TEST(at::equal(captures[0], at::full({2}, 30.0F)));
  BOOST_TEST(at::equal(captures[1], at::ones({2})));
}

BOOST_AUTO_TEST_SUITE_END()
