// SPDX-License-Identifier: BSD-3-Clause
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>
#include <boost/test/unit_test.hpp>

#include <troupe/engine/backward.hpp>
#include <troupe/engine/graph_task.hpp>
#include <troupe/engine/plan.hpp>
#include <troupe/engine/torch_compat.hpp>

using namespace troupe::engine;

BOOST_AUTO_TEST_SUITE(plans)

namespace {

torch::autograd::Edge edge_of(const at::Tensor& tensor) { return torch::autograd::impl::gradient_edge(tensor); }

const plan::vertex* vertex_of(const plan& graph, const at::Tensor& tensor) {
  const auto* function = edge_of(tensor).function.get();
  for (const auto& vertex : graph.vertices)
    if (vertex.function == function) return &vertex;
  return nullptr;
}

at::Tensor leaf() { return at::ones({1}).requires_grad_(); }

double seconds_of_chain(int length) {
  at::Tensor x = leaf();
  at::Tensor end = x;
  for (int i = 0; i < length; ++i) end = end.view_as(end);
  const auto start = std::chrono::steady_clock::now();
  troupe::backward({end});
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  BOOST_TEST(x.grad().item<float>() == 1);
  return taken.count();
}

// A recursion with one call per function would need a hundred times this stack, even with the smallest frames.
double on_a_small_stack(double (*run)()) {
  struct call {
    double (*run)();
    double result = 0;
  } made{run};
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, std::size_t{512} << 10);
  pthread_t thread{};
  const auto body = [](void* argument) -> void* {
    auto& here = *static_cast<call*>(argument);
    here.result = here.run();
    return nullptr;
  };
  BOOST_REQUIRE(pthread_create(&thread, &attributes, body, &made) == 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  return made.result;
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_function_is_numbered_once_and_its_edges_are_counted) {
  const auto x = leaf();
  const auto y = x * 2;
  const auto z = y * y + y;
  const plan graph({edge_of(z)}, {}, {}, false);
  BOOST_TEST(graph.vertices.size() == 4u);
  BOOST_TEST(vertex_of(graph, z)->missing == 1u);  // the root's own gradient
  BOOST_TEST(vertex_of(graph, y)->missing == 3u);
  BOOST_TEST(vertex_of(graph, x)->missing == 1u);
  BOOST_TEST(graph.slot_count == 4u);
}

// PL-4
BOOST_AUTO_TEST_CASE(every_function_is_one_vertex_and_is_found) {
  const auto x = leaf();
  const auto held = x.exp();
  const auto twice = held.neg();                     // two edges lead here, and the test holds the tensor
  auto end = (twice * x.sin().cos() + twice).sum();  // one pointer leads to most of these functions
  end = end * end.detach() + end;                    // two edges, and no tensor
  for (const auto& inputs : {torch::autograd::edge_list{}, torch::autograd::edge_list{edge_of(held)}}) {
    const plan graph({edge_of(end), edge_of(held), edge_of(end)}, {}, inputs, false);
    BOOST_TEST(graph.vertices.size() == 10u);
    BOOST_TEST(graph.vertices[0].missing == 2u);
    for (std::uint32_t i = 0; i < graph.vertices.size(); ++i) BOOST_TEST(graph.find(*graph.vertices[i].function) == i);
    BOOST_TEST(graph.find(*edge_of(leaf()).function) == plan::none);
  }
}

namespace {

/// A plan over a chain of functions to which one pointer leads each, and the functions.
struct plan_of_chain {
  explicit plan_of_chain(int length) {
    for (int i = 0; i < length; ++i) end = end.exp();
    graph.build({edge_of(end)}, {}, {}, false, nullptr);
    for (const auto& each : graph.vertices) functions.push_back(each.function);
  }
  at::Tensor end = leaf();
  plan graph;
  std::vector<const torch::autograd::Node*> functions;
};

}  // namespace

// PL-5: the plan has forgotten its functions by the second question, so this question cannot look at one vertex after the other.
BOOST_AUTO_TEST_CASE(only_the_first_question_looks_at_all_vertices) {
  plan_of_chain made(1000);
  const std::size_t unasked = made.graph.memory();
  BOOST_TEST(made.graph.find(*made.functions.back()) == made.functions.size() - 1);
  BOOST_TEST(made.graph.memory() > unasked);
  for (auto& each : made.graph.vertices) each.function = nullptr;
  for (std::size_t i = 0; i < made.functions.size(); ++i) BOOST_TEST(made.graph.find(*made.functions[i]) == i);
  BOOST_TEST(made.graph.find(*edge_of(leaf()).function) == plan::none);
}

// PL-5
BOOST_AUTO_TEST_CASE(a_plan_that_is_built_again_numbers_its_new_functions) {
  plan_of_chain made(3);
  made.graph.find(*made.functions[0]);
  const auto other = leaf().sin().cos();
  made.graph.build({edge_of(other)}, {}, {}, false, nullptr);
  BOOST_TEST(made.graph.find(*made.functions[0]) == plan::none);
  for (std::uint32_t i = 0; i < made.graph.vertices.size(); ++i)
    BOOST_TEST(made.graph.find(*made.graph.vertices[i].function) == i);
}

// PL-5
BOOST_AUTO_TEST_CASE(several_threads_may_ask_first) {
  for (int round = 0; round < 20; ++round) {
    const plan_of_chain made(200);
    std::atomic<int> wrong{0};
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 4; ++thread)
      threads.emplace_back([&] {
        for (std::size_t i = 0; i < made.functions.size(); ++i) wrong += made.graph.find(*made.functions[i]) == i ? 0 : 1;
      });
    threads.clear();
    BOOST_TEST(wrong == 0);
  }
}

// PL-1
BOOST_AUTO_TEST_CASE(a_million_functions_in_a_chain_are_planned_run_and_destroyed_without_recursion) {
  const double small = seconds_of_chain(100'000);
  const double large = on_a_small_stack([] { return seconds_of_chain(1'000'000); });
  BOOST_TEST_MESSAGE("chain of 100,000: " << small * 1e4 << " ns a function, of 1,000,000: " << large * 1e3);
  BOOST_TEST(large < 100 * small);  // linear growth is 10 times
}

BOOST_AUTO_TEST_CASE(a_wide_graph_reaches_every_leaf) {
  std::vector<at::Tensor> leaves;
  std::vector<at::Tensor> ends;
  for (int i = 0; i < 20'000; ++i) {
    leaves.push_back(leaf());
    ends.push_back(leaves.back() * 2);
  }
  troupe::backward({at::cat(ends).sum()});
  BOOST_TEST(std::all_of(leaves.begin(), leaves.end(), [](const at::Tensor& l) { return l.grad().item<float>() == 2; }));
}

// PL-2
BOOST_AUTO_TEST_CASE(only_ways_to_the_inputs_execute) {
  const auto a = leaf();
  const auto b = leaf();
  const auto left = a * 2;
  const auto right = b * 3;
  const auto sum = left + right;
  const plan graph({edge_of(sum)}, {}, {edge_of(a)}, false);
  BOOST_TEST(vertex_of(graph, sum)->executes());
  BOOST_TEST(vertex_of(graph, left)->executes());
  BOOST_TEST(vertex_of(graph, a)->executes());
  BOOST_TEST(!vertex_of(graph, right)->executes());
  BOOST_TEST((vertex_of(graph, b) == nullptr || !vertex_of(graph, b)->executes()));
}

// PL-2
BOOST_AUTO_TEST_CASE(a_captured_function_does_not_run_unless_it_leads_to_another_one) {
  const auto a = leaf();
  const auto b = a * 2;
  const auto c = b * 2;
  const plan one({edge_of(c)}, {}, {edge_of(b)}, true);
  BOOST_TEST(vertex_of(one, b)->marks == plan::captured);
  const plan both({edge_of(c)}, {}, {edge_of(b), edge_of(a)}, true);
  BOOST_TEST(vertex_of(both, b)->marks == (plan::captured | plan::needed));
  BOOST_TEST(vertex_of(both, a)->marks == plan::captured);
}

// PL-3
BOOST_AUTO_TEST_CASE(a_function_has_the_rank_of_the_first_source_that_reaches_it) {
  const auto a = leaf();
  const auto root = a * 2;
  const auto early = a * 3;
  const auto late = early * a;
  const auto send = [](const at::Tensor& from, std::uint64_t rank) {
    return send_source{attach_send({rank, {}}, {from}), rank};
  };
  const std::vector<send_source> sends{send(late, 900), send(early, 7)};
  const plan graph({edge_of(root)}, sends, {}, false);
  BOOST_TEST(vertex_of(graph, root)->rank == 0u);
  BOOST_TEST(vertex_of(graph, a)->rank == 0u);
  BOOST_TEST(vertex_of(graph, early)->rank == 1u);
  BOOST_TEST(vertex_of(graph, late)->rank == 2u);
  BOOST_TEST(graph.vertices[graph.sends[0]].rank == 2u);
  BOOST_TEST(graph.vertices[graph.sends[1]].rank == 1u);
}

BOOST_AUTO_TEST_CASE(a_send_given_twice_is_refused) {
  const auto send = attach_send({1, {}}, {leaf()});
  BOOST_CHECK_THROW(plan({}, {{send, 0}, {send, 0}}, {}, false), c10::Error);
}

// PL-2: a function that was recorded before every input cannot lead to one.
BOOST_AUTO_TEST_CASE(nothing_below_the_inputs_is_visited) {
  const auto a = leaf();
  const auto first = a * 2;
  const auto second = first * 2;
  const auto third = second * 2;
  const auto aside = leaf() * 3;
  const auto end = third * 2 + aside;
  const plan high({edge_of(end)}, {}, {edge_of(third)}, true);
  BOOST_TEST(vertex_of(high, third)->marks == plan::captured);
  BOOST_TEST(vertex_of(high, second) != nullptr);  // an edge of the input leads there
  BOOST_TEST(vertex_of(high, second)->edge_count == 0u);
  BOOST_TEST(!vertex_of(high, first));
  BOOST_TEST(!vertex_of(high, a));
  BOOST_TEST(high.vertices.size() == 5u);
  const plan low({edge_of(end)}, {}, {edge_of(third), edge_of(first)}, true);
  BOOST_TEST(vertex_of(low, first)->marks == plan::captured);
  BOOST_TEST(vertex_of(low, second)->marks == plan::needed);
  BOOST_TEST(vertex_of(low, a)->edge_count == 0u);
}

BOOST_AUTO_TEST_SUITE_END()
