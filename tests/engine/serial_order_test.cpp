// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/variable.h>
#include <boost/test/unit_test.hpp>

#include <troupe/engine/graph_task_settings.hpp>
#include <troupe/engine/plan.hpp>
#include <troupe/engine/serial_order.hpp>

#include "engine/oracle.hpp"

using namespace troupe::engine;
using troupe::test::functions_of;
using troupe::test::record_order;

BOOST_AUTO_TEST_SUITE(serial_orders)

namespace {

torch::autograd::Edge edge_of(const at::Tensor& tensor) { return torch::autograd::impl::gradient_edge(tensor); }

at::Tensor leaf() { return at::ones({2}).requires_grad_(); }

std::uint32_t position_of(const at::Tensor& tensor, const plan& graph, const std::vector<std::uint32_t>& order) {
  for (std::uint32_t i = 0; i < order.size(); ++i)
    if (graph.vertices[order[i]].function == edge_of(tensor).function.get()) return i;
  return plan::none;
}

}  // namespace

BOOST_AUTO_TEST_CASE(are_the_order_in_which_libtorchs_engine_runs_the_functions) {
  const auto x = leaf();
  const auto w = leaf();
  const auto a = x.sin() * w;
  const auto b = w.exp() + x;
  const auto root = (a * b + a.cos()).sum();
  const plan graph({edge_of(root)}, {}, {}, false);
  const auto all = functions_of({root});
  std::vector<std::size_t> ours;
  for (const std::uint32_t each : serial_order(graph))
    ours.push_back(std::find(all.begin(), all.end(), graph.vertices[each].function) - all.begin());
  const auto libtorchs = std::make_shared<std::vector<std::size_t>>();
  record_order({root}, libtorchs);
  torch::autograd::backward({root});
  BOOST_TEST(libtorchs->size() == graph.vertices.size());
  BOOST_TEST(ours == *libtorchs, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(have_every_send_at_their_start) {
  const auto x = leaf();
  const auto early = x * 2;
  const auto late = x * 3;
  const std::vector<send_source> sends{{attach_send({1, {}}, {early}), 1}, {attach_send({2, {}}, {late}), 2}};
  const plan graph({edge_of(x.exp())}, sends, {}, false);
  const auto order = serial_order(graph);
  BOOST_REQUIRE(order.size() == graph.vertices.size());
  BOOST_TEST(order[0] == graph.sends[1]);  // the higher rank
  BOOST_TEST(position_of(late, graph, order) == 1u);
  BOOST_TEST(order[2] == graph.sends[0]);
  BOOST_TEST(position_of(early, graph, order) == 3u);
  BOOST_TEST(position_of(x, graph, order) == order.size() - 1);
}

BOOST_AUTO_TEST_CASE(hold_what_is_captured_only_and_nothing_after_it) {
  const auto x = leaf();
  const auto middle = x * 2;
  const auto root = middle * 3;
  const plan graph({edge_of(root)}, {}, {edge_of(middle)}, true);
  const auto order = serial_order(graph);
  BOOST_TEST(order.size() == 2u);
  BOOST_TEST(position_of(root, graph, order) == 0u);
  BOOST_TEST(position_of(middle, graph, order) == 1u);
}

BOOST_AUTO_TEST_SUITE_END()
