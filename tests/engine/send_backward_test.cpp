// SPDX-License-Identifier: BSD-3-Clause
#include <ATen/ATen.h>
#include <torch/csrc/autograd/variable.h>
#include <boost/test/unit_test.hpp>

#include <troupe/engine/send_backward.hpp>

using namespace troupe;
using namespace troupe::engine;

BOOST_AUTO_TEST_SUITE(sends)

BOOST_AUTO_TEST_CASE(have_an_edge_to_each_tensor_that_requires_grad_in_order) {
  const auto one = at::ones({1}).requires_grad_();
  const auto two = one * 2;
  const auto send = attach_send({5, node_id{7}}, {two, at::ones({1}), at::Tensor(), one});
  BOOST_REQUIRE(send);
  BOOST_TEST((send->message == message_id{5, node_id{7}}));
  BOOST_REQUIRE(send->next_edges().size() == 2u);
  BOOST_TEST(send->next_edge(0).function == two.grad_fn());
  BOOST_TEST(send->next_edge(1).function == torch::autograd::impl::gradient_edge(one).function);
}

BOOST_AUTO_TEST_CASE(are_not_made_where_no_tensor_requires_grad) {
  BOOST_TEST(!attach_send({1, {}}, {at::ones({1}), at::Tensor()}));
  BOOST_TEST(!attach_send({1, {}}, {}));
}

BOOST_AUTO_TEST_CASE(hand_on_the_gradients_of_the_peer_as_they_are) {
  const auto leaf = at::ones({1}).requires_grad_();
  const auto send = attach_send({1, {}}, {leaf});
  const auto gradient = at::full({1}, 3);
  const auto outputs = send->apply({gradient});
  BOOST_REQUIRE(outputs.size() == 1u);
  BOOST_TEST(outputs[0].is_same(gradient));
}

BOOST_AUTO_TEST_SUITE_END()
