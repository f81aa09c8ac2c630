// SPDX-License-Identifier: BSD-3-Clause
// How the gradients of passes come together in a context, on nodes that talk over loopback.
#include <boost/test/unit_test.hpp>

#include <torch/torch.h>

#include <future>
#include <vector>

#include <troupe/actors/passes/context_record.hpp>
#include <troupe/troupe.hpp>

#include "actors/loopback_nodes.hpp"

namespace {

using troupe::test::becomes_true;
using troupe::test::loopback_settings;

struct nodes_that_gather {
  nodes_that_gather() {
    b.functions().add("times_weight", [this](troupe::call_arguments& arguments) {
      return troupe::call_reply{{arguments.tensors.at(0) * weight}};
    });
    b.functions().add("gradient", [this](troupe::call_arguments& arguments) {
      return troupe::call_reply{{arguments.gradients->find(weight)}};
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
  for (const double gradient : {1e8, -1e8, 1.0}) {  // the sum is 0 unless 1.0 is added last
    with.gradients = {torch::full({1}, gradient)};
    pass.backward({y}, with).get();
  }
  BOOST_TEST(a.peer("b").call("gradient").get().tensors.at(0).item<float>() == 1.0f);
}

// CO-8
BOOST_AUTO_TEST_CASE(a_gradient_that_was_handed_out_is_changed_by_no_later_pass) {
  auto x = torch::ones({2, 2}, torch::requires_grad());
  auto z = torch::ones({3}, torch::requires_grad());
  auto rows = torch::ones({3, 2}, torch::requires_grad());
  for (const bool create_graph : {false, true}) {
    troupe::context pass(a);
    troupe::backward_options with;
    with.keep_graph = true;
    with.create_graph = create_graph;
    auto y = a.peer("b").call("times_weight", {x}).get().tensors.at(0);
    auto picked = torch::embedding(rows, torch::tensor({0, 2}), -1, false, true);  // its gradient is sparse
    auto root = y.square().sum() + z.square().sum() + picked.sum();
    const auto keep_all = [&] {
      const auto table = pass.gradients();
      return std::vector<at::Tensor>{pass.gradient(x),
                                     pass.gradient(z),
                                     pass.gradient(rows),
                                     table->find(x),
                                     pass.gradient(z).view({3, 1}),
                                     a.peer("b").call("gradient").get().tensors.at(0)};
    };
    std::vector<std::vector<at::Tensor>> handed_out;
    std::vector<std::vector<at::Tensor>> copies;
    for (int n = 1; n <= 3; ++n) {
      pass.backward({root}, with).get();
      handed_out.push_back(keep_all());
      copies.emplace_back();
      for (const auto& each : handed_out.back()) copies.back().push_back(each.detach().clone());
      BOOST_TEST(at::equal(handed_out.back()[1], torch::full({3}, 2.0 * n)));
      BOOST_TEST(at::equal(handed_out.back()[2].to_dense(), torch::tensor({{n, n}, {0, 0}, {n, n}}, torch::kFloat)));
    }
    for (std::size_t n = 0; n < handed_out.size(); ++n)
      for (std::size_t i = 0; i < handed_out[n].size(); ++i)
        BOOST_TEST(at::equal(handed_out[n][i].to_dense(), copies[n][i].to_dense()), "gradient " << i << " of pass " << n + 1);
  }
}

// CO-8: a call reads the gradients that it was given, while the next pass adds to the gradients of the context.
BOOST_AUTO_TEST_CASE(a_call_reads_gradients_that_stay_as_they_are_while_the_next_pass_is_gathered) {
  std::promise<void> begun;
  std::promise<void> let_go;
  b.functions().add("gradient_later", [&](troupe::call_arguments& arguments) {
    begun.set_value();
    let_go.get_future().wait();
    return troupe::call_reply{{arguments.gradients->find(weight).clone()}};
  });
  troupe::context pass(a);
  auto y = a.peer("b").call("times_weight", {torch::ones({1}, torch::requires_grad())}).get().tensors.at(0);
  troupe::backward_options with;
  with.keep_graph = true;
  pass.backward({y}, with).get();
  auto reply = a.peer("b").call("gradient_later");
  begun.get_future().wait();
  pass.backward({y}, with).get();
  auto next = a.peer("b").call("gradient");
  // The call waits for the worker, with the gradients of both passes.
  BOOST_TEST(becomes_true([&] { return b.status().calls_queued != 0; }));
  let_go.set_value();
  BOOST_TEST(next.get().tensors.at(0).item<float>() == 2.0f);
  BOOST_TEST(reply.get().tensors.at(0).item<float>() == 1.0f);
}

// CR-1, CR-2
BOOST_AUTO_TEST_CASE(a_record_that_is_released_takes_no_send_and_starts_no_pass) {
  troupe::support::activity counts;
  troupe::passes::context_record record({a.id(), 1}, a.id(), counts);
  auto leaf = torch::ones({1}, torch::requires_grad());
  const auto send = [&](std::uint64_t number) {
    return troupe::engine::send_source{troupe::engine::attach_send({number, a.id()}, {leaf}), 0};
  };
  BOOST_TEST(record.add(send(1), b.id()));
  BOOST_REQUIRE(record.begin(false).has_value());
  BOOST_TEST(!record.begin(false).has_value());
  BOOST_TEST(counts.passes_running == 1u);
  BOOST_TEST(record.release().sends.size() == 1u);
  BOOST_TEST(!record.add(send(2), b.id()));
  BOOST_TEST(record.release().sends.empty());
  BOOST_TEST(!record.begin(false).has_value());
  BOOST_TEST(counts.contexts == 0u);
  BOOST_TEST(counts.passes_running == 0u);
  BOOST_TEST(counts.passes_failed == 1u);
}

BOOST_AUTO_TEST_SUITE_END()
