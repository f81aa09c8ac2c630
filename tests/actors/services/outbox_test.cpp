// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/services/outbox.hpp>

#include <boost/test/unit_test.hpp>

#include <string>
#include <vector>

#include <ATen/ATen.h>

#include "actors/lone_services.hpp"

using namespace troupe;

BOOST_AUTO_TEST_SUITE(outbox_of_a_node)

BOOST_AUTO_TEST_CASE(pack_tensors_detached_with_the_send_that_leads_back) {
  test::lone_services here;
  const auto leaf = at::ones({2}).requires_grad_();
  const auto product = leaf * 2;
  const auto packed = here.services.outbox.pack({here.services.self.id(), 1}, {product, at::ones({1})}, "a call", node_id{7});
  BOOST_TEST(!packed.payload.tensors[0].requires_grad());
  BOOST_TEST((packed.payload.requires_grad == std::vector<bool>{true, false}));
  BOOST_REQUIRE(packed.send);
  BOOST_TEST(packed.send->next_edge(0).function == product.grad_fn());
  BOOST_TEST((packed.send->message == packed.payload.message));
  BOOST_TEST(!here.services.outbox.pack({}, {product}, "a call", node_id{7}).send);  // no context
  BOOST_CHECK_EXCEPTION(
    here.services.outbox.pack({}, {at::ones({1}), at::empty({1}, at::device(at::kMeta))}, "a call", node_id{7}), error,
    [](const error& refused) { return std::string(refused.what()).starts_with("tensor 1 of a call"); });
}

BOOST_AUTO_TEST_CASE(pack_any_number_of_tensors_for_the_node_itself) {
  test::lone_services here;
  const std::vector<at::Tensor> many(65'537, at::ones({}));
  BOOST_TEST(here.services.outbox.pack({}, many, "a call", here.services.self.id()).payload.tensors.size() == many.size());
  BOOST_CHECK_EXCEPTION(here.services.outbox.pack({}, many, "a call", node_id{7}), error,
                        [](const error& refused) { return refused.code() == errc::unsupported_tensor; });
}

BOOST_AUTO_TEST_SUITE_END()
