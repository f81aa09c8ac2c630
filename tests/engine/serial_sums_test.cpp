// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/variable.h>
#include <boost/test/unit_test.hpp>

#include <troupe/engine/graph_task_settings.hpp>
#include <troupe/engine/plan.hpp>
#include <troupe/engine/serial_order.hpp>

using namespace troupe::engine;

BOOST_AUTO_TEST_SUITE(sums_in_serial_order)

namespace {

torch::autograd::Edge edge_of(const at::Tensor& tensor) { return torch::autograd::impl::gradient_edge(tensor); }

// A leaf whose gradient is the sum of the gradients that come along three edges, in serial order.
struct three_edges {
  three_edges() : graph({edge_of(first), edge_of(second), edge_of(third)}, {}, {}, false) {
    for (const at::Tensor* each : {&first, &second, &third})
      edges.push_back(graph.vertices[graph.find(*edge_of(*each).function)].first_edge);
    slot = graph.vertices[graph.find(*edge_of(leaf).function)].first_slot;
  }

  at::Tensor leaf = at::ones({1}).requires_grad_();
  at::Tensor third = leaf.sin();  // what was recorded last runs first
  at::Tensor second = leaf.sin();
  at::Tensor first = leaf.sin();
  plan graph;
  std::vector<std::uint32_t> edges;
  std::uint32_t slot = 0;
};

// Numbers whose sum depends on the order of the additions.
const std::vector<float> values{1e8F, 3.0F, -1e8F};

float in_serial_order() {
  float sum = values[0];
  sum += values[1];
  sum += values[2];
  return sum;
}

}  // namespace

// SS-1
BOOST_AUTO_TEST_CASE(what_comes_in_its_turn_is_added_at_once_and_what_comes_too_early_is_held) {
  const three_edges to;
  serial_sums sums(to.graph);
  at::Tensor buffer;
  sums.add(to.edges[2], to.slot, buffer, at::full({1}, 5));
  BOOST_TEST(!buffer.defined());
  sums.add(to.edges[0], to.slot, buffer, at::full({1}, 1));
  BOOST_TEST(buffer.item<float>() == 1);
  sums.add(to.edges[1], to.slot, buffer, at::full({1}, 3));
  BOOST_TEST(buffer.item<float>() == 9);
}

// SS-1
BOOST_AUTO_TEST_CASE(what_was_skipped_is_not_waited_for) {
  const three_edges to;
  serial_sums sums(to.graph);
  at::Tensor buffer;
  sums.add(to.edges[1], to.slot, buffer, at::full({1}, 3));
  sums.skip(to.edges[0]);
  BOOST_TEST(!buffer.defined());  // a skip touches no tensor
  sums.settle(to.slot, buffer);
  BOOST_TEST(buffer.item<float>() == 3);
  sums.add(to.edges[2], to.slot, buffer, at::full({1}, 5));
  BOOST_TEST(buffer.item<float>() == 8);
}

// SS-1
BOOST_AUTO_TEST_CASE(have_the_same_bits_for_every_order_of_arrival) {
  std::vector<int> arrival{0, 1, 2};
  do {
    const three_edges to;
    serial_sums sums(to.graph);
    at::Tensor buffer;
    for (const int each : arrival) {
      sums.add(to.edges[each], to.slot, buffer, at::full({1}, values[each]));
    }
    BOOST_TEST(buffer.item<float>() == in_serial_order());
  } while (std::next_permutation(arrival.begin(), arrival.end()));
}

BOOST_AUTO_TEST_CASE(of_a_pass_that_began_without_them_wait_for_no_function_that_has_run) {
  const three_edges to;
  serial_sums sums(to.graph, 1);
  at::Tensor buffer = at::full({1}, 1.0F);  // the gradient of the function that has run
  sums.add(to.edges[1], to.slot, buffer, at::full({1}, 3));
  BOOST_TEST(buffer.item<float>() == 4);
}

BOOST_AUTO_TEST_CASE(tell_of_each_sum_along_which_edge_the_value_came) {
  const three_edges to;
  serial_sums sums(to.graph);
  std::vector<std::uint32_t> told;
  sums.on_sum([&](std::uint32_t edge, std::uint64_t) { told.push_back(edge); });
  at::Tensor buffer;
  for (const int each : {2, 1, 0}) {
    sums.add(to.edges[each], to.slot, buffer, at::full({1}, 1));
  }
  BOOST_TEST(told == to.edges, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
