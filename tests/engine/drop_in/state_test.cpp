// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <functional>
#include <memory>
#include <thread>

#include <ATen/ATen.h>
#include <ATen/record_function.h>
#include <c10/core/AutogradState.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/graph_task.h>
#include <boost/test/unit_test.hpp>

#include "engine/both_ways.hpp"
#include "engine/drop_in/both_engines.hpp"
#include "engine/oracle.hpp"

using namespace troupe::test;

BOOST_AUTO_TEST_SUITE(drop_in_state)

namespace {

at::Tensor leaf(at::IntArrayRef shape) { return at::ones(shape).requires_grad_(); }

/// What a function can ask about its pass. Functions are named by their index in `all`, the functions of the graph.
std::vector<std::string> state_seen(const std::vector<torch::autograd::Node*>& all) {
  std::vector<std::string> seen;
  const auto* exec_info = torch::autograd::get_current_graph_task_exec_info();
  const auto* in_graph = torch::autograd::get_current_graph_task_nodes_in_graph();
  seen.push_back(exec_info->empty() ? "runs all" : "trimmed");
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto found = exec_info->find(all[i]);
    const bool executes = found != exec_info->end() && found->second.should_execute();
    const bool needed = found != exec_info->end() && found->second.needed_;
    const std::size_t captures = found != exec_info->end() && found->second.captures_ ? found->second.captures_->size() : 0;
    seen.push_back(std::to_string(i) + (in_graph->count(all[i]) != 0 ? " in graph" : " not in graph") +
                   (executes ? " executes" : "") + (needed ? " needed" : "") + " captures " + std::to_string(captures));
  }
  seen.push_back(torch::autograd::get_current_graph_task_keep_graph() ? "keeps" : "frees");
  seen.push_back(torch::autograd::Engine::get_default_engine().is_checkpoint_valid() ? "checkpoint" : "no checkpoint");
  seen.push_back(c10::GradMode::is_enabled() ? "grad mode" : "no grad mode");
  return seen;
}

thread_local std::vector<std::string> operators;

std::unique_ptr<at::ObserverContext> note_operator(const at::RecordFunction& called) {
  operators.emplace_back(called.name());
  return nullptr;
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_first_pass_of_a_thread_calls_the_operators_of_libtorchs_and_no_others) {
  const auto run = [] {
    std::vector<std::string> seen;
    std::thread([&] {
      const auto x = leaf({2});
      const auto loss = (x.exp() * x).sum();
      const auto handle =
        at::addThreadLocalCallback(at::RecordFunctionCallback(note_operator).scopes({at::RecordScope::FUNCTION}));
      torch::autograd::backward({loss});
      at::removeCallback(handle);
      seen = operators;
    }).join();
    std::erase(seen, "autograd::engine::evaluate_function: troupe::pass");  // troupe's private function, around all others
    return seen;
  };
  const auto found = on_both(run);
  BOOST_TEST(found.libtorch.size() > 4u);
  BOOST_TEST(found.troupe == found.libtorch, boost::test_tools::per_element());
}

// SU-1, DT-1
BOOST_AUTO_TEST_CASE(functions_see_the_state_of_libtorchs_passes) {
  const auto run = [](int kind) {
    return [kind] {
      std::vector<std::string> seen;
      std::vector<torch::autograd::Node*> all;
      const auto x = leaf({2});
      const auto w = leaf({2});
      const auto y = through(x.exp(), [&](at::Tensor gradient) {
        seen = state_seen(all);
        return gradient;
      });
      const auto loss = (y * w).sum();
      all = functions_of({loss});
      switch (kind) {
        case 0:
          torch::autograd::backward({loss});
          break;
        case 1:
          torch::autograd::backward({loss}, {}, true);
          break;
        case 2:
          torch::autograd::backward({loss}, {}, false, false, {x});
          break;
        case 3:
          torch::autograd::grad({loss}, {x, y});
          break;
        case 4:
          torch::autograd::grad({loss, y.sum()}, {x, x}, {}, true, true);
          break;
        case 5: {  // a final callback sees the state after all functions have run
          const auto end = through(loss, [&](at::Tensor gradient) {
            torch::autograd::Engine::get_default_engine().queue_callback([&] { seen = state_seen(all); });
            return gradient;
          });
          torch::autograd::backward({end});
          break;
        }
      }
      return seen;
    };
  };
  for (const int kind : {0, 1, 2, 3, 4, 5}) {
    const auto found = on_both(run(kind));
    BOOST_TEST_CONTEXT("kind of pass " << kind) {
      BOOST_TEST(found.libtorch.size() > 6u);
      BOOST_TEST(found.troupe == found.libtorch, boost::test_tools::per_element());
    }
  }
}

BOOST_AUTO_TEST_CASE(libtorchs_functions_compute_only_what_a_trimmed_pass_needs) {
  const installed engine;
  const auto x = leaf({2});
  const auto w = leaf({2});
  const auto product = x * w;
  std::vector<bool> defined;
  struct look final : torch::autograd::FunctionPostHook {
    explicit look(std::vector<bool>& defined) : defined(defined) {}
    torch::autograd::variable_list operator()(const torch::autograd::variable_list& outputs,
                                              const torch::autograd::variable_list&) override {
      for (const at::Tensor& each : outputs) defined.push_back(each.defined());
      return outputs;
    }
    std::vector<bool>& defined;
  };
  product.grad_fn()->add_post_hook(std::make_unique<look>(defined));
  torch::autograd::grad({product.sum()}, {w});
  BOOST_TEST(defined == (std::vector<bool>{false, true}));
}

// DT-1
BOOST_AUTO_TEST_CASE(the_order_of_a_pass_is_known_beforehand_where_it_keeps_to_one_thread) {
  const auto run = [] {
    auto state = c10::AutogradState::get_tls_state();
    state.set_multithreading_enabled(false);
    const auto before = c10::AutogradState::get_tls_state();
    c10::AutogradState::set_tls_state(state);
    std::vector<std::string> order;
    std::vector<torch::autograd::Node*> all;
    const auto x = leaf({2});
    const auto z = (x.exp() * x.sin()).sum() + x.sum();
    z.register_hook([&](const at::Tensor&) {
      for (const auto* each : torch::autograd::get_current_graph_task_execution_order())
        order.push_back(std::to_string(std::find(all.begin(), all.end(), each) - all.begin()));
    });
    all = functions_of({z, x});
    torch::autograd::backward({z, x}, {at::ones({}), at::ones({2})}, true);
    order.push_back("and");
    torch::autograd::grad({z}, {x});
    c10::AutogradState::set_tls_state(before);
    return order;
  };
  const auto found = on_both(run);
  BOOST_TEST(found.libtorch.size() > 10u);
  BOOST_TEST(found.troupe == found.libtorch, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(each_pass_has_an_id_of_its_own_and_none_is_left_behind) {
  const installed engine;
  std::vector<int> ids;
  const auto x = leaf({2});
  const auto y = through(x, [&](at::Tensor gradient) {
    ids.push_back(torch::autograd::get_current_graph_task_id());
    return gradient;
  });
  torch::autograd::backward({y.sum()}, {}, true);
  torch::autograd::backward({y.sum()}, {}, true);
  BOOST_TEST(ids.size() == 2u);
  BOOST_TEST(ids[0] != ids[1]);
  BOOST_TEST(ids[0] != -1);
  BOOST_TEST(torch::autograd::get_current_graph_task_id() == -1);
}

BOOST_AUTO_TEST_CASE(no_sequence_numbers_are_used_up) {
  const auto run = [] {
    const auto next = [] { return at::sequence_number::peek(); };
    const auto x = leaf({2});
    const auto loss = x.exp().sum();
    const auto before = next();
    torch::autograd::backward({loss});
    return std::vector<std::string>{std::to_string(next() - before)};
  };
  const auto found = on_both(run);
  BOOST_TEST(found.troupe == found.libtorch, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_private_function_that_somebody_holds_on_to_runs_no_other_pass) {
  const installed engine;
  const auto running = [] {
    troupe::engine::node_pointer function;
    const auto x = leaf({2});
    x.register_hook([&](const at::Tensor&) { function = torch::autograd::get_current_node(); });
    torch::autograd::backward({x.sum()});
    return function;
  };
  const auto held = running();
  const auto next = running();
  BOOST_TEST(held->name() == "troupe::pass");
  BOOST_TEST(next->name() == "troupe::pass");
  BOOST_TEST(next != held);
}

BOOST_AUTO_TEST_CASE(only_backward_warns_of_graphs_in_gradients) {
  const c10::WarningUtils::WarnAlways not_only_once;
  const auto run = [](const std::function<void(const at::Tensor& loss, const at::Tensor& x)>& pass) {
    return [pass] {
      collected_warnings warnings;
      const auto x = leaf({2});
      pass(x.exp().sum(), x);
      x.mutable_grad() = at::Tensor();
      return warnings.texts;
    };
  };
  const auto backward = on_both(run([](const auto& loss, const auto&) { torch::autograd::backward({loss}, {}, true, true); }));
  BOOST_TEST(backward.libtorch.size() == 1u);
  BOOST_TEST(backward.troupe == backward.libtorch, boost::test_tools::per_element());
  const auto grad = on_both(run([](const auto& loss, const auto& x) { torch::autograd::grad({loss}, {x}, {}, true, true); }));
  BOOST_TEST(grad.libtorch.empty());
  BOOST_TEST(grad.troupe.empty());
}

BOOST_AUTO_TEST_CASE(a_pass_of_a_single_function_is_left_to_libtorch) {  // SU-3
  const installed engine;
  const auto x = leaf({2});
  bool inside = false;
  x.register_hook([&](const at::Tensor&) { inside = inside_troupe(); });
  torch::autograd::backward({x}, {at::ones({2})});
  BOOST_TEST(!inside);
  torch::autograd::backward({x * 1}, {at::ones({2})});
  BOOST_TEST(inside);
  BOOST_TEST(at::equal(x.grad(), at::full({2}, 2.0F)));
}

BOOST_AUTO_TEST_SUITE_END()
