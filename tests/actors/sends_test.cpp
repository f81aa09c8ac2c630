// SPDX-License-Identifier: BSD-3-Clause
// Which messages join graphs, along which routes over nodes gradients flow back, and what happens to gradients at leaves.
#include <boost/test/unit_test.hpp>

#include <torch/torch.h>

#include <chrono>
#include <future>
#include <string>
#include <vector>

#include <troupe/actors/node_access.hpp>
#include <troupe/actors/passes/context_record.hpp>
#include <troupe/troupe.hpp>

#include "actors/loopback_nodes.hpp"

using namespace std::chrono_literals;

namespace {

using troupe::call_arguments;
using troupe::call_reply;
using troupe::test::becomes_idle;
using troupe::test::loopback_settings;
using tensors = std::vector<at::Tensor>;

/// Three nodes that know each other, each with a weight of 3.
struct nodes_that_send {
  nodes_that_send() {
    for (auto* each : {&a, &b, &c}) {
      auto& functions = each->functions();
      functions.add("twice", [](call_arguments& arguments) { return call_reply{{arguments.tensors.at(0) * 2}}; });
      functions.add("echo", [](call_arguments& arguments) { return call_reply{arguments.tensors}; });
      functions.add("sum",
                    [](call_arguments& arguments) { return call_reply{{arguments.tensors.at(0) + arguments.tensors.at(1)}}; });
      functions.add("weight", [w = weight](call_arguments&) { return call_reply{{w * 1}}; });
      functions.add("gradient", [w = weight](call_arguments& arguments) { return call_reply{{arguments.gradients->find(w)}}; });
      functions.add("go", [](call_arguments& arguments) {  // doubles, then asks the next node of the way
        auto way = troupe::get<std::string>(arguments.values, "way");
        const auto y = arguments.tensors.at(0) * 2;
        if (way.empty()) return call_reply{{y}};
        const auto next = arguments.here.peer(way.substr(0, 1));
        return call_reply{next.call("go", {y}, {{"way", way.substr(1)}}).get().tensors};
      });
      functions.add("go_and_forget", [](call_arguments& arguments) {  // one of two results of its calls goes unused
        const auto next = arguments.here.peer("c");
        const auto used = next.call("twice", arguments.tensors).get().tensors.at(0);
        next.call("twice", {used}).get();
        return call_reply{{used}};
      });
    }
    b.join("127.0.0.1", c.port());
    a.join("127.0.0.1", b.port());
    a.peer("c");
    c.peer("a");
  }

  tensors call(const std::string& node, const std::string& function, tensors arguments = {}, troupe::attributes values = {}) {
    return a.peer(node).call(function, std::move(arguments), std::move(values)).get().tensors;
  }

  /// How many sends a node has in a context. Begins pass 1000, so no other pass may run in the context afterwards.
  static std::size_t sends(troupe::node& where, const troupe::context& pass) {
    const auto record = troupe::services_of(where).contexts.find(pass.id()).record;
    return record ? record->follow({1000})->sends.size() : 0;
  }

  bool nothing_is_left() { return becomes_idle(a) && becomes_idle(b) && becomes_idle(c); }

  at::Tensor weight = torch::full({2}, 3.0, torch::requires_grad());
  at::Tensor x = torch::ones({2}, torch::requires_grad());
  troupe::node a{loopback_settings("a")};
  troupe::node b{loopback_settings("b")};
  troupe::node c{loopback_settings("c")};
};

/// A hook that notes the gradient with which its function was called.
struct noted_gradient : torch::autograd::FunctionPostHook {
  explicit noted_gradient(tensors& to) : seen(to) {}
  tensors operator()(const tensors& outputs, const tensors& inputs) override {
    seen.push_back(inputs.at(0));
    return outputs;
  }
  tensors& seen;
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(sends, nodes_that_send)

BOOST_AUTO_TEST_CASE(a_message_without_tensors_that_require_grad_attaches_nothing) {
  troupe::context pass(a);
  const auto back = call("b", "echo", {torch::ones({2}), at::arange(3), at::Tensor{}});
  BOOST_TEST((!back[0].requires_grad() && !back[1].requires_grad() && !back[2].defined()));
  BOOST_TEST(sends(a, pass) == 0u);
  BOOST_TEST(sends(b, pass) == 0u);
}

BOOST_AUTO_TEST_CASE(integers_travel_plain_beside_tensors_that_require_grad) {
  troupe::context pass(a);
  const auto back = call("b", "echo", {at::arange(3), x, torch::ones({2})});
  BOOST_TEST(at::equal(back[0], at::arange(3)));
  BOOST_TEST((!back[0].requires_grad() && back[1].requires_grad() && !back[2].requires_grad()));
  BOOST_TEST(sends(a, pass) == 1u);
  BOOST_TEST(sends(b, pass) == 1u);
}

// CW-3
BOOST_AUTO_TEST_CASE(a_call_without_tensors_records_what_it_computes_if_its_caller_records) {
  {
    troupe::context pass(a);
    const torch::NoGradGuard no_graph;
    BOOST_TEST(!call("b", "weight").at(0).requires_grad());
    BOOST_TEST(sends(b, pass) == 0u);
  }
  troupe::context pass(a);
  pass.backward({call("b", "weight").at(0).sum()}).get();
  BOOST_TEST(at::equal(call("b", "gradient").at(0), torch::ones({2})));
}

BOOST_AUTO_TEST_CASE(calls_go_from_a_to_b_to_c_to_a_and_gradients_back) {
  {
    troupe::context pass(a);
    pass.backward({call("b", "go", {x}, {{"way", "cabc"}}).at(0).sum()}).get();
    BOOST_TEST(at::equal(pass.gradient(x), torch::full({2}, 32.0)));
  }
  BOOST_TEST(nothing_is_left());
}

BOOST_AUTO_TEST_CASE(a_tensor_that_is_sent_many_times_gets_the_sum) {
  troupe::context pass(a);
  at::Tensor sum = torch::zeros({2});
  for (int i = 0; i < 5; ++i) sum = sum + call(i % 2 == 0 ? "b" : "c", "twice", {x}).at(0);
  sum = sum + call("b", "sum", {x, x}).at(0);
  pass.backward({sum.sum()}).get();
  BOOST_TEST(at::equal(pass.gradient(x), torch::full({2}, 12.0)));
}

BOOST_AUTO_TEST_CASE(one_result_is_used_by_several_nodes) {
  troupe::context pass(a);
  const auto y = call("b", "weight").at(0);
  pass.backward({(call("c", "twice", {y}).at(0) + call("b", "twice", {y}).at(0) + y).sum()}).get();
  BOOST_TEST(at::equal(call("b", "gradient").at(0), torch::full({2}, 5.0)));
}

BOOST_AUTO_TEST_CASE(a_diamond_over_nodes_with_unused_results_has_whole_gradients) {
  {
    troupe::context pass(a);
    const auto left = call("b", "twice", {x}).at(0);
    const auto right = call("c", "twice", {x}).at(0);
    call("c", "twice", {left});
    call("b", "sum", {left, right});
    pass.backward({call("c", "sum", {left, right}).at(0).sum()}).get();
    BOOST_TEST(at::equal(pass.gradient(x), torch::full({2}, 4.0)));
  }
  BOOST_TEST(nothing_is_left());
}

BOOST_AUTO_TEST_CASE(sends_that_only_another_node_leads_to_are_found) {
  {
    troupe::context pass(a);
    pass.backward({call("b", "go_and_forget", {x}).at(0).sum()}).get();
    BOOST_TEST(at::equal(pass.gradient(x), torch::full({2}, 2.0)));
  }
  BOOST_TEST(nothing_is_left());
}

BOOST_AUTO_TEST_CASE(hooks_of_leaves_run_before_and_after_the_gradient_is_gathered) {
  tensors after;
  weight.register_hook([](const at::Tensor& gradient) { return gradient * 10; });
  const auto leaf = torch::autograd::impl::grad_accumulator(weight);
  const auto key = leaf->add_post_hook(std::make_unique<noted_gradient>(after));
  troupe::context pass(a);
  for (int passes = 1; passes <= 2; ++passes) {
    pass.backward({call("b", "weight").at(0).sum()}).get();
    BOOST_TEST(at::equal(call("b", "gradient").at(0), torch::full({2}, 10.0 * passes)));
    BOOST_REQUIRE(after.size() == static_cast<std::size_t>(passes));
    BOOST_TEST(at::equal(after.back(), torch::full({2}, 10.0)));
  }
  BOOST_TEST(!weight.grad().defined());
  leaf->del_post_hook(key);
}

BOOST_AUTO_TEST_CASE(passes_of_two_contexts_are_under_way_at_once_over_shared_parameters) {
  std::promise<void> met[2];
  std::future<void> other[2] = {met[1].get_future(), met[0].get_future()};
  const auto one = [&](int i) {
    troupe::context pass(a);
    auto y = call("b", "weight").at(0) * x * (i + 1);
    y.register_hook([&, i](const at::Tensor&) {
      met[i].set_value();
      if (other[i].wait_for(10s) != std::future_status::ready) throw std::runtime_error("the other pass does not begin");
    });
    pass.backward({y.sum()}).get();
    return std::pair(pass.gradient(x), call("b", "gradient").at(0));
  };
  auto second = std::async(std::launch::async, one, 1);
  const auto [mine, there] = one(0);
  BOOST_TEST(at::equal(mine, torch::full({2}, 3.0)));
  BOOST_TEST(at::equal(there, torch::ones({2})));
  const auto [theirs, there_too] = second.get();
  BOOST_TEST(at::equal(theirs, torch::full({2}, 6.0)));
  BOOST_TEST(at::equal(there_too, torch::full({2}, 2.0)));
  BOOST_TEST((!x.grad().defined() && !weight.grad().defined()));
}

BOOST_AUTO_TEST_SUITE_END()
