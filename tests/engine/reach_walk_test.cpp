// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstdint>
#include <vector>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/variable.h>
#include <boost/test/unit_test.hpp>

#include <troupe/engine/graph_task_implementation.hpp>
#include <troupe/engine/graph_task_settings.hpp>
#include <troupe/engine/recv_backward.hpp>

using namespace troupe;
using namespace troupe::engine;

BOOST_AUTO_TEST_SUITE(reach_walks)

namespace {

torch::autograd::Edge edge_of(const at::Tensor& tensor) { return torch::autograd::impl::gradient_edge(tensor); }

at::Tensor received(std::uint64_t number) {
  return attach_recv({node_id{7}, 1}, {number, node_id{8}}, {at::ones({1})}, {true})[0];
}

std::uint32_t vertex_of(const at::Tensor& tensor, const plan& graph) { return graph.find(*edge_of(tensor).function); }

std::vector<std::uint64_t> numbers(const std::vector<message_id>& messages) {
  std::vector<std::uint64_t> all;
  for (const message_id& each : messages) all.push_back(each.number);
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace

BOOST_AUTO_TEST_CASE(find_the_recvs_that_the_given_functions_lead_to) {
  const auto one = received(1);
  const auto two = received(2);
  const auto other = received(3);
  const auto both = one * two;
  const auto root = both.sin() + other;
  const plan graph({edge_of(root)}, {}, {}, false);
  BOOST_TEST(numbers(reach_walk{}(graph, {vertex_of(both, graph)})) == (std::vector<std::uint64_t>{1, 2}));
  BOOST_TEST(numbers(reach_walk{}(graph, {vertex_of(root, graph)})) == (std::vector<std::uint64_t>{1, 2, 3}));
  BOOST_TEST(reach_walk{}(graph, {plan::none}).empty());
}

BOOST_AUTO_TEST_CASE(find_each_recv_once_over_all_calls) {
  const auto shared = received(1);
  const auto left = shared * 2;
  const auto right = shared * received(2);
  const auto root = left + right;
  const plan graph({edge_of(root)}, {}, {}, false);
  reach_walk walk;
  BOOST_TEST(numbers(walk(graph, {vertex_of(left, graph)})) == (std::vector<std::uint64_t>{1}));
  BOOST_TEST(numbers(walk(graph, {vertex_of(right, graph), vertex_of(left, graph)})) == (std::vector<std::uint64_t>{2}));
  BOOST_TEST(walk(graph, {vertex_of(root, graph)}).empty());
}

BOOST_AUTO_TEST_CASE(leave_out_leaves_that_are_no_recvs) {
  const auto leaf = at::ones({1}).requires_grad_();
  const auto root = leaf * 2;
  const plan graph({edge_of(root)}, {}, {}, false);
  BOOST_TEST(reach_walk{}(graph, {vertex_of(root, graph)}).empty());
}

BOOST_AUTO_TEST_SUITE_END()
