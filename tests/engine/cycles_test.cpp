// SPDX-License-Identifier: BSD-3-Clause
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/variable.h>
#include <boost/test/unit_test.hpp>

#include <troupe/engine/backward.hpp>
#include <troupe/engine/gradient_table.hpp>
#include <troupe/engine/graph_task.hpp>

#include "engine/both_ways.hpp"
#include "engine/drop_in/both_engines.hpp"
#include "engine/threads.hpp"

using namespace troupe::test;
using torch::autograd::edge_list;
using torch::autograd::variable_list;

BOOST_AUTO_TEST_SUITE(cycles)

namespace {

/// root -> first -> second -> first, by edges set by hand; `first` leads to a leaf too.
struct cyclic_graph {
  cyclic_graph() { second->next_edges()[0] = {first, 0}; }
  ~cyclic_graph() { second->next_edges()[0] = {}; }  // otherwise functions that own each other would never be freed
  cyclic_graph(const cyclic_graph&) = delete;
  cyclic_graph& operator=(const cyclic_graph&) = delete;

  at::Tensor leaf = at::ones({2}).requires_grad_();
  troupe::engine::node_pointer second = make_function(
    "second", [](variable_list gradients) { return gradients; }, leaf, edge_list(1));
  troupe::engine::node_pointer first = make_function(
    "first",
    [](const variable_list& gradients) {
      return variable_list{gradients[0], gradients[0]};
    },
    leaf, edge_list{torch::autograd::impl::gradient_edge(leaf), {second, 0}});

  at::Tensor root() {
    at::Tensor result = at::ones({2});
    torch::autograd::impl::set_gradient_edge(result, {first, 0});
    return through(result, [this](at::Tensor gradient) {
      ++ran;
      return gradient;
    });
  }

  int ran = 0;
};

}  // namespace

// GT-9
BOOST_AUTO_TEST_CASE(a_pass_whose_functions_wait_for_each_other_fails_and_final_callbacks_do_not_run) {
  const auto run = [](const way& run_on) {
    std::vector<std::string> notes;
    cyclic_graph graph;
    const auto root = through(graph.root(), [&](at::Tensor gradient) {
      run_on.queue_callback([&] { notes.emplace_back("callback"); });
      return gradient;
    });
    const std::string error = error_of([&] { run_on.backward({root}, {at::ones({2})}, true); });
    notes.push_back(error.substr(0, error.find(':')));
    notes.push_back(std::to_string(graph.ran));
    notes.emplace_back(graph.leaf.grad().defined() ? "a gradient" : "no gradient");
    const std::string trimmed = error_of([&] { run_on.grad({root}, {graph.leaf}, {at::ones({2})}, true); });
    notes.push_back(trimmed.substr(0, trimmed.find(':')));
    return notes;
  };
  TROUPE_TEST_BOTH_WAYS(run, 4);
  BOOST_TEST(run(way(true))[0] == "could not compute gradients for some functions");
}

// GT-9
BOOST_AUTO_TEST_CASE(a_pass_with_workers_whose_functions_wait_for_each_other_fails) {
  for (const std::int64_t grain :
       {std::int64_t{0}, std::int64_t{1'000'000'000'000}}) {  // all functions are large; none is large
    threads workers(1, grain);
    cyclic_graph graph;
    const auto root = graph.root();
    for (int round = 1; round <= 3; ++round) {
      const std::string error =
        error_of([&] { troupe::backward({root}, {at::ones({2})}, {.keep_graph = true, .workers = &workers}); });
      BOOST_TEST(error.find("'first' still waits for 1 gradient") != std::string::npos, error);
      BOOST_TEST(graph.ran == round);
    }
  }
}

// GT-9
BOOST_AUTO_TEST_CASE(the_error_names_a_function_that_still_waits_and_buffers_are_freed) {
  cyclic_graph graph;
  const at::Tensor gradient = at::ones({2});
  troupe::engine::graph_task_settings settings;
  settings.roots = {torch::autograd::impl::gradient_edge(graph.root())};
  settings.root_gradients = {gradient};
  settings.keep_graph = true;
  troupe::engine::graph_task task(std::move(settings));
  const std::string error = error_of([&] { task.run(); });
  BOOST_TEST(error.find("'first' still waits for 1 gradient") != std::string::npos, error);
  BOOST_TEST(task.failed_function() == "first");
  BOOST_TEST(task.finished());
  BOOST_TEST(gradient.use_count() == 1U);
}

// GT-9
BOOST_AUTO_TEST_CASE(a_pass_that_waits_for_sends_says_so_only_after_the_last_one) {
  cyclic_graph graph;
  troupe::engine::gradient_table leaves;
  const auto x = at::ones({2}).requires_grad_();
  troupe::engine::graph_task_settings settings;
  settings.roots = {torch::autograd::impl::gradient_edge(graph.root())};
  settings.root_gradients = {at::ones({2})};
  settings.sends = {{troupe::engine::attach_send({1, {1}}, {x * 2}), 1}};
  settings.leaves = &leaves;
  settings.keep_graph = true;
  troupe::engine::graph_task task(std::move(settings));
  task.run();
  task.deliver(0, {at::ones({2})});
  BOOST_CHECK_THROW(task.run(), c10::Error);
}

// GT-3, GT-9
BOOST_AUTO_TEST_CASE(a_cycle_that_only_dropped_sends_reach_is_no_error) {
  cyclic_graph graph;
  troupe::engine::graph_task_settings settings;
  settings.sends = {{troupe::engine::attach_send({1, {1}}, {graph.root()}), 1}};
  troupe::engine::graph_task task(std::move(settings));
  task.drop(0);
  task.run();
  BOOST_TEST(task.finished());
  BOOST_TEST(graph.ran == 0);
}

BOOST_AUTO_TEST_SUITE_END()
