// SPDX-License-Identifier: BSD-3-Clause
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <c10/util/Exception.h>
#include <boost/test/unit_test.hpp>

#include <troupe/engine/recv_backward.hpp>

using namespace troupe;
using namespace troupe::engine;

BOOST_AUTO_TEST_SUITE(recvs)

namespace {

const context_id context{node_id{7}, 1};
const message_id message{5, node_id{8}};

bool says(const c10::Error& refused, const std::string& part) {
  BOOST_TEST_INFO(refused.what_without_backtrace());
  return std::string(refused.what_without_backtrace()).find(part) != std::string::npos;
}

}  // namespace

BOOST_AUTO_TEST_CASE(have_the_marked_tensors_as_outputs_which_share_the_storage_of_those_that_came) {
  const std::vector<at::Tensor> came{at::ones({1}), at::ones({2}), at::Tensor(), at::ones({3}, at::kDouble)};
  const auto attached = attach_recv(context, message, came, {false, true, true, true});
  BOOST_REQUIRE(attached.size() == 4u);
  BOOST_TEST(attached[0].is_same(came[0]));
  BOOST_TEST(!attached[2].defined());
  BOOST_REQUIRE(attached[1].grad_fn());
  BOOST_TEST(attached[1].grad_fn() == attached[3].grad_fn());
  BOOST_TEST(attached[1].output_nr() == 0u);
  BOOST_TEST(attached[3].output_nr() == 1u);
  BOOST_TEST(attached[3].data_ptr() == came[3].data_ptr());
  BOOST_TEST(!came[1].requires_grad());
  const auto* recv = dynamic_cast<const recv_backward*>(attached[1].grad_fn().get());
  BOOST_REQUIRE(recv != nullptr);
  BOOST_TEST((recv->context == context));
  BOOST_TEST((recv->message == message));
}

BOOST_AUTO_TEST_CASE(are_not_made_where_no_tensor_requires_grad) {
  BOOST_TEST(!attach_recv(context, message, {at::ones({1})}, {})[0].grad_fn());
  BOOST_TEST(!attach_recv(context, message, {at::ones({1})}, {false})[0].grad_fn());
}

BOOST_AUTO_TEST_CASE(of_tensors_that_can_not_require_grad_or_were_not_all_marked_are_refused) {
  BOOST_CHECK_EXCEPTION(attach_recv(context, message, {at::ones({1}), at::ones({1}, at::kLong)}, {true, true}), c10::Error,
                        [](const c10::Error& refused) { return says(refused, "tensor 1 of message"); });
  BOOST_CHECK_EXCEPTION(attach_recv(context, message, {at::ones({1}), at::ones({1})}, {true}), c10::Error,
                        [](const c10::Error& refused) { return says(refused, "has 2 tensors, but 1 flags"); });
}

BOOST_AUTO_TEST_SUITE_END()
