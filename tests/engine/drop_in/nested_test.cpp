// SPDX-License-Identifier: BSD-3-Clause
#include <set>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/graph_task.h>
#include <boost/test/unit_test.hpp>

#include <troupe/engine/current_pass.hpp>

#include "engine/drop_in/both_engines.hpp"
#include "engine/oracle.hpp"

using namespace troupe::test;

BOOST_AUTO_TEST_SUITE(drop_in_nested_passes)

namespace {

at::Tensor leaf(at::IntArrayRef shape) { return at::ones(shape).requires_grad_(); }

/// A tensor whose backward pass runs a nested pass, and so on, `depth` deep.
at::Tensor nest(const at::Tensor& from, int depth, int& deepest, int now = 1) {
  return through(from, [=, &deepest](at::Tensor gradient) {
    deepest = std::max(deepest, now);
    if (now < depth) {
      const c10::AutoGradMode recording(true);
      const auto x = leaf({1});
      return gradient + torch::autograd::grad({nest(x, depth, deepest, now + 1).sum()}, {x})[0];
    }
    return gradient;
  });
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_function_can_run_a_pass) {
  const auto run = [] {
    const auto x = leaf({1});
    int deepest = 0;
    torch::autograd::backward({nest(x, 3, deepest).sum()});
    return std::vector<std::string>{text_of(x.grad()), std::to_string(deepest)};
  };
  const auto found = on_both(run);
  BOOST_TEST(found.troupe == found.libtorch, boost::test_tools::per_element());
  BOOST_TEST(found.troupe.back() == "3");
}

BOOST_AUTO_TEST_CASE(passes_nest_five_thousand_deep) {
  const installed engine;
  const auto x = leaf({1});
  int deepest = 0;
  torch::autograd::backward({nest(x, 5000, deepest).sum()});
  BOOST_TEST(deepest == 5000);
  BOOST_TEST(x.grad().item<float>() == 5000);
}

BOOST_AUTO_TEST_CASE(a_hook_can_run_a_pass_over_the_same_leaves) {
  const auto run = [] {
    const auto x = leaf({3});
    const auto extra = (x * 5).sum();
    const auto y = x * 2;
    y.register_hook([&](const at::Tensor&) { torch::autograd::backward({extra}, {}, true); });
    torch::autograd::backward({y.sum()});
    return std::vector<std::string>{text_of(x.grad())};
  };
  const auto found = on_both(run);
  BOOST_TEST(found.troupe == found.libtorch, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(an_error_in_a_nested_pass_ends_the_outer_one) {
  const installed engine;
  const auto x = leaf({1});
  const auto inner = through(x, [](const at::Tensor&) -> at::Tensor { throw std::runtime_error("inner"); }).sum();
  const auto outer = through(x, [&](at::Tensor gradient) {
    torch::autograd::backward({inner}, {}, true);
    return gradient;
  });
  BOOST_TEST(error_of([&] { torch::autograd::backward({outer.sum()}); }) == "std: inner");
}

BOOST_AUTO_TEST_CASE(final_callbacks_run_after_their_pass_also_those_of_callbacks) {
  const auto run = [] {
    std::vector<std::string> trace;
    const auto queue = [](std::function<void()> call) {
      torch::autograd::Engine::get_default_engine().queue_callback(std::move(call));
    };
    const auto x = leaf({2});
    x.register_hook([&](const at::Tensor&) { trace.emplace_back("leaf"); });
    const auto inner = through(leaf({2}), [&](at::Tensor gradient) {
                         queue([&] { trace.emplace_back("inner callback"); });
                         return gradient;
                       }).sum();
    const auto y = through(x, [&](at::Tensor gradient) {
      queue([&] {
        trace.push_back("first " + std::to_string(c10::GradMode::is_enabled()));
        queue([&] { trace.emplace_back("queued by a callback"); });
      });
      torch::autograd::backward({inner}, {}, true);
      trace.emplace_back("after inner");
      queue([&] { trace.emplace_back("second"); });
      return gradient;
    });
    torch::autograd::backward({y.sum()});
    trace.emplace_back("done");
    torch::autograd::grad({y.sum()}, {x}, {}, true, true);
    return trace;
  };
  const auto found = on_both(run);
  BOOST_TEST(found.libtorch.size() == 13u);
  BOOST_TEST(found.troupe == found.libtorch, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(an_error_of_a_final_callback_is_the_passes) {
  const auto run = [] {
    const auto y = through(leaf({2}), [&](at::Tensor gradient) {
      torch::autograd::Engine::get_default_engine().queue_callback([] { throw std::runtime_error("from a callback"); });
      return gradient;
    });
    return std::vector<std::string>{error_of([&] { torch::autograd::backward({y.sum()}); })};
  };
  const auto found = on_both(run);
  BOOST_TEST(found.troupe == found.libtorch, boost::test_tools::per_element());
  BOOST_TEST(found.troupe[0] == "std: from a callback");
}

// SU-1
BOOST_AUTO_TEST_CASE(a_deep_pass_finds_what_it_would_find_on_libtorchs_engine) {
  for (const int depth : {10, 58, 59, 60, 61, 62, 125}) {
    const auto run = [depth] {
      std::vector<std::string> notes;
      const std::function<at::Tensor(const at::Tensor&, int)> down = [&](const at::Tensor& from, int level) {
        return through(from, [&, level](at::Tensor gradient) {
          const c10::AutoGradMode recording(true);
          if (level < depth) {
            torch::autograd::backward({down(leaf({1}), level + 1).sum()});
            return gradient;
          }
          notes.emplace_back(torch::autograd::get_current_graph_task_id() != -1 ? "in a pass" : "in none");
          notes.emplace_back(torch::autograd::get_current_graph_task_keep_graph() ? "keeps" : "frees");
          notes.push_back(error_of(
            [&] { torch::autograd::Engine::get_default_engine().queue_callback([&] { notes.emplace_back("callback"); }); }));
          const auto a = at::full({4}, 1.5).requires_grad_();
          const auto x = at::linspace(0.1, 2, 4).requires_grad_();
          notes.push_back(error_of([&] { torch::autograd::grad({at::igamma(a, x).sum()}, {x}); }));
          return gradient;
        });
      };
      torch::autograd::backward({down(leaf({1}), 1).sum()});
      return notes;
    };
    const auto found = on_both(run);
    BOOST_TEST_CONTEXT("depth " << depth) {
      BOOST_TEST(found.libtorch.size() == 5u);
      BOOST_TEST(found.troupe == found.libtorch, boost::test_tools::per_element());
    }
  }
}

// SU-1: troupe's stack of passes continues where libtorch continues.
BOOST_AUTO_TEST_CASE(a_deep_pass_is_nested_for_troupes_api_too) {
  const installed engine;
  std::set<bool> valid;
  const std::function<at::Tensor(const at::Tensor&, int)> down = [&](const at::Tensor& from, int level) {
    return through(from, [&, level](at::Tensor gradient) {
      const c10::AutoGradMode recording(true);
      if (level < 130) torch::autograd::backward({down(leaf({1}), level + 1).sum()});
      valid.insert(troupe::is_checkpoint_valid());
      return gradient;
    });
  };
  const auto x = leaf({1});
  torch::autograd::grad({down(x, 1).sum()}, {x});
  BOOST_TEST((valid == std::set<bool>{false}));
}

BOOST_AUTO_TEST_SUITE_END()
