// SPDX-License-Identifier: BSD-3-Clause
// How the gradients of passes come together in a context, on nodes that talk over loopback.
#include <boost/test/unit_test.hpp>

#include <torch/torch.h>

#include <string>

#include <troupe/actors/context_record.hpp>
#include <troupe/troupe.hpp>

#include "actors/loopback_nodes.hpp"

namespace {

using troupe::test::loopback_settings;

struct nodes_that_gather {
  nodes_that_gather() {
    b.functions().add("times_weight", [this](troupe::call_arguments& arguments) {
      return troupe::call_reply{{arguments.tensors.at(0) * weight}};
    });
    b.functions().add("gradient", [this](troupe::call_arguments& arguments) {
      return troupe::call_reply{{arguments.gradients ? arguments.gradients->find(weight) : at::Tensor{}}};
    });
    a.join("127.0.0.1", b.port());
  }

  at::Tensor weight = torch::ones({1}, torch::requires_grad());
  troupe::node a{loopback_settings("a")};
  troupe::node b{loopback_settings("b")};
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(gathering, nodes_that_gather)

// CO-1
BOOST_AUTO_TEST_CASE(gradients_of_passes_are_added_in_the_order_of_the_passes) {
  troupe::context pass(a);
  auto y = a.peer("b").call("times_weight", {torch::ones({1}, torch::requires_grad())}).get().tensors.at(0);
  troupe::backward_options with;
  with.keep_graph = true;
  for (const double gradient : {1e8, -1e8, 1.0}) {  // any other order gives 0
    with.gradients = {torch::full({1}, gradient)};
    pass.backward({y}, with).get();
  }
  BOOST_TEST(a.peer("b").call("gradient").get().tensors.at(0).item<float>() == 1.0f);
}

// CR-1, CR-2
BOOST_AUTO_TEST_CASE(a_record_that_is_released_takes_no_send_and_starts_no_pass) {
  troupe::activity counts;
  troupe::context_record record({a.id(), 1}, a.id(), counts);
  auto leaf = torch::ones({1}, torch::requires_grad());
  const auto send = [&](std::uint64_t number) {
    return troupe::engine::send_source{troupe::engine::attach_send({number, a.id()}, {leaf}), 0};
  };
  BOOST_TEST(record.add(send(1), b.id()));
  BOOST_REQUIRE(record.begin(false).has_value());
  BOOST_TEST(!record.begin(false).has_value());
  BOOST_TEST(counts.passes_running == 1u);
  BOOST_TEST(record.release().size() == 1u);
  BOOST_TEST(!record.add(send(2), b.id()));
  BOOST_TEST(record.release().empty());
  BOOST_TEST(!record.begin(false).has_value());
  BOOST_TEST(counts.contexts == 0u);
  BOOST_TEST(counts.passes_running == 0u);
  BOOST_TEST(counts.passes_failed == 1u);
}

BOOST_AUTO_TEST_SUITE_END()
