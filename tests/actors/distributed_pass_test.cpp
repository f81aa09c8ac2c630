// SPDX-License-Identifier: BSD-3-Clause
// Whole passes over nodes of one process that talk over loopback, as separate processes do.
#include <boost/test/unit_test.hpp>

#include <torch/torch.h>

#include <atomic>
#include <chrono>
#include <future>
#include <thread>

#include <caf/scoped_actor.hpp>

#include <troupe/actors/node_access.hpp>
#include <troupe/messages/caf_error.hpp>
#include <troupe/troupe.hpp>

using namespace std::chrono_literals;

namespace {

struct pair_of_nodes {
  static troupe::settings named(std::string name) {
    troupe::settings result;
    result.name = std::move(name);
    result.deadline = 10s;
    return result;
  }

  pair_of_nodes() : a(named("a")), b(named("b")) {
    b.functions().add("times_weight", [this](troupe::call_arguments& arguments) {
      return troupe::call_reply{{arguments.tensors.at(0) * weight}};
    });
    b.functions().add("both", [this](troupe::call_arguments& arguments) {
      return troupe::call_reply{{arguments.tensors.at(0) * weight, arguments.tensors.at(0) + weight}};
    });
    b.functions().add("gradient", [this](troupe::call_arguments& arguments) {
      return troupe::call_reply{{arguments.gradients->find(weight)}};
    });
    b.functions().add("fail", [](troupe::call_arguments&) -> troupe::call_reply { throw std::runtime_error("no luck"); });
    b.functions().add("fail_in_backward", [](troupe::call_arguments& arguments) {
      auto x = arguments.tensors.at(0) * 2;
      x.register_hook([](at::Tensor) -> at::Tensor { throw std::runtime_error("hook refuses"); });
      return troupe::call_reply{{x}};
    });
    a.join("127.0.0.1", b.port());
  }

  at::Tensor weight = torch::tensor({2.0, 3.0}, torch::requires_grad());
  troupe::node a;
  troupe::node b;
};

bool same(const at::Tensor& x, const at::Tensor& y) { return x.defined() && y.defined() && at::equal(x, y); }

}  // namespace

BOOST_FIXTURE_TEST_SUITE(distributed_pass, pair_of_nodes)

BOOST_AUTO_TEST_CASE(a_call_outside_any_context_joins_no_graph) {
  auto x = torch::tensor({1.0, 5.0}, torch::requires_grad());
  auto y = a.peer("b").call("times_weight", {x}).get().tensors.at(0);
  BOOST_TEST(same(y, torch::tensor({2.0, 15.0})));
  BOOST_TEST(!y.requires_grad());
}

// XA-1
BOOST_AUTO_TEST_CASE(a_function_finds_no_gradients_outside_contexts_and_before_the_first_pass) {
  BOOST_TEST(!a.peer("b").call("gradient").get().tensor(0).defined());
  troupe::context pass(a);
  BOOST_TEST(!a.peer("b").call("gradient").get().tensor(0).defined());
  a.peer("b").call("times_weight", {torch::ones({2})}).get();
  BOOST_TEST(!a.peer("b").call("gradient").get().tensor(0).defined());
}

// PA-6. Node b calls c and d. The gradients of c come long before those of d, and b has nothing to run meanwhile.
BOOST_AUTO_TEST_CASE(a_node_waits_for_those_that_it_has_called_before_it_reports) {
  troupe::node c(named("c"));
  troupe::node d(named("d"));
  const auto from = [](const troupe::node& at, const std::string& peer) {
    for (const auto& each : at.status().peers)
      if (each.who.name == peer) return each.messages_received;
    return std::uint64_t{0};
  };
  for (auto* each : {&c, &d}) {
    each->functions().add("twice", [&, is_d = each == &d](troupe::call_arguments& arguments) {
      auto y = arguments.tensors.at(0) * 2;
      if (is_d)
        y.register_hook([&](at::Tensor gradient) {
          while (from(b, "c") < 2) std::this_thread::yield();  // the result of the call, and the gradients
          while (b.status().functions_run < 4) std::this_thread::yield();
          return gradient;
        });
      return troupe::call_reply{{y}};
    });
    b.join("127.0.0.1", each->port());
  }
  b.functions().add("fan", [](troupe::call_arguments& arguments) {
    const auto& x = arguments.tensors.at(0);
    auto first = arguments.here.peer("c").call("twice", {x * 3});
    auto second = arguments.here.peer("d").call("twice", {x * 5});
    return troupe::call_reply{{first.get().tensors.at(0) + second.get().tensors.at(0)}};
  });
  auto x = torch::tensor({1.0, 5.0}, torch::requires_grad());
  troupe::context pass(a);
  auto y = a.peer("b").call("fan", {x}).get().tensors.at(0);
  pass.backward({y.sum()}).get();
  BOOST_TEST(same(pass.gradient(x), torch::tensor({16.0, 16.0})));
  BOOST_TEST(from(a, "b") == 2U);  // the result of the call, and the gradients
}

BOOST_AUTO_TEST_CASE(gradients_cross_nodes_and_gather_in_the_context) {
  auto x = torch::tensor({1.0, 5.0}, torch::requires_grad());
  troupe::context pass(a);
  auto y = a.peer("b").call("times_weight", {x}).get().tensors.at(0);
  BOOST_TEST(y.requires_grad());
  pass.backward({y.sum()}).get();
  BOOST_TEST(same(pass.gradient(x), torch::tensor({2.0, 3.0})));
  BOOST_TEST(same(a.peer("b").call("gradient").get().tensors.at(0), torch::tensor({1.0, 5.0})));
  BOOST_TEST(!x.grad().defined());
  BOOST_TEST(!weight.grad().defined());
}

BOOST_AUTO_TEST_CASE(several_round_trips_in_one_pass) {
  auto x = torch::tensor({1.0, 5.0}, torch::requires_grad());
  troupe::context pass(a);
  auto y = x;
  for (int i = 0; i < 4; ++i) y = a.peer("b").call("times_weight", {y}).get().tensors.at(0);
  pass.backward({y.sum()}).get();
  BOOST_TEST(same(pass.gradient(x), torch::tensor({16.0, 81.0})));
  auto at_weight = a.peer("b").call("gradient").get().tensors.at(0);
  BOOST_TEST(same(at_weight, torch::tensor({4 * 8.0, 5 * 4 * 27.0})));
}

BOOST_AUTO_TEST_CASE(backward_completes_when_a_result_goes_unused) {
  auto x = torch::tensor({1.0, 5.0}, torch::requires_grad());
  troupe::context pass(a);
  auto unused = a.peer("b").call("times_weight", {x}).get().tensors.at(0);
  auto y = a.peer("b").call("times_weight", {x}).get().tensors.at(0);
  pass.backward({y.sum()}).get();
  BOOST_TEST(same(pass.gradient(x), torch::tensor({2.0, 3.0})));
  BOOST_TEST(same(a.peer("b").call("gradient").get().tensors.at(0), torch::tensor({1.0, 5.0})));
}

BOOST_AUTO_TEST_CASE(backward_completes_when_one_of_two_results_goes_unused) {
  auto x = torch::tensor({1.0, 5.0}, torch::requires_grad());
  troupe::context pass(a);
  auto both = a.peer("b").call("both", {x}).get().tensors;
  pass.backward({both.at(1).sum()}).get();
  BOOST_TEST(same(pass.gradient(x), torch::tensor({1.0, 1.0})));
}

// IN-4
BOOST_AUTO_TEST_CASE(fast_mode_runs_what_is_used_and_names_the_node_of_an_unused_result) {
  auto x = torch::tensor({1.0, 5.0}, torch::requires_grad());
  troupe::context pass(a);
  troupe::backward_options fast;
  fast.mode = troupe::pass_mode::fast;
  auto y = a.peer("b").call("times_weight", {x}).get().tensors.at(0);
  pass.backward({y.sum()}, fast).get();
  BOOST_TEST(same(pass.gradient(x), torch::tensor({2.0, 3.0})));
  auto unused = a.peer("b").call("times_weight", {x}).get().tensors.at(0);
  auto z = a.peer("b").call("times_weight", {x}).get().tensors.at(0);
  BOOST_CHECK_EXCEPTION(pass.backward({z.sum()}, fast).get(), troupe::error, [](const troupe::error& e) {
    const std::string text = e.what();
    return e.code() == troupe::errc::misuse && text.find("fast mode") != text.npos && text.find("'b'") != text.npos;
  });
  BOOST_TEST(same(pass.gradient(x), torch::tensor({2.0, 3.0})));
}

BOOST_AUTO_TEST_CASE(two_passes_with_a_kept_graph_accumulate) {
  auto x = torch::tensor({1.0, 5.0}, torch::requires_grad());
  troupe::context pass(a);
  auto y = a.peer("b").call("times_weight", {x}).get().tensors.at(0).sum();
  troupe::backward_options keep;
  keep.keep_graph = true;
  pass.backward({y}, keep).get();
  pass.backward({y}).get();
  BOOST_TEST(same(pass.gradient(x), torch::tensor({4.0, 6.0})));
  BOOST_TEST(same(a.peer("b").call("gradient").get().tensors.at(0), torch::tensor({2.0, 10.0})));
}

BOOST_AUTO_TEST_CASE(a_throwing_function_names_node_function_and_reason) {  // CW-1
  BOOST_CHECK_EXCEPTION(a.peer("b").call("fail").get(), troupe::error, [](const troupe::error& e) {
    std::string text = e.what();
    return e.code() == troupe::errc::function_failed && text.find("'fail'") != text.npos && text.find("'b'") != text.npos &&
           text.find("no luck") != text.npos;
  });
}

BOOST_AUTO_TEST_CASE(a_hook_that_throws_ends_the_pass_and_leaves_the_context_usable) {
  auto x = torch::tensor({1.0, 5.0}, torch::requires_grad());
  troupe::context pass(a);
  auto bad = a.peer("b").call("fail_in_backward", {x}).get().tensors.at(0);
  auto good = a.peer("b").call("times_weight", {x}).get().tensors.at(0);
  BOOST_CHECK_EXCEPTION(pass.backward({(bad + good).sum()}).get(), troupe::error, [](const troupe::error& e) {
    std::string text = e.what();
    return text.find("'b'") != text.npos && text.find("hook refuses") != text.npos;
  });
  auto again = a.peer("b").call("times_weight", {x}).get().tensors.at(0);
  pass.backward({again.sum()}).get();
  BOOST_TEST(same(pass.gradient(x), torch::tensor({2.0, 3.0})));
  BOOST_TEST(same(a.peer("b").call("gradient").get().tensors.at(0), torch::tensor({1.0, 5.0})));
}

BOOST_AUTO_TEST_CASE(a_node_may_call_itself) {
  a.functions().add("square", [](troupe::call_arguments& arguments) {
    return troupe::call_reply{{arguments.tensors.at(0) * arguments.tensors.at(0)}};
  });
  auto x = torch::tensor({1.0, 5.0}, torch::requires_grad());
  troupe::context pass(a);
  auto y = a.self().call("square", {x}).get().tensors.at(0);
  pass.backward({y.sum()}).get();
  BOOST_TEST(same(pass.gradient(x), torch::tensor({2.0, 10.0})));
}

BOOST_AUTO_TEST_CASE(nested_calls_join_the_context) {
  a.functions().add("double",
                    [](troupe::call_arguments& arguments) { return troupe::call_reply{{arguments.tensors.at(0) * 2}}; });
  b.functions().add("through_a", [this](troupe::call_arguments& arguments) {
    auto y = b.peer("a").call("double", {arguments.tensors.at(0) * weight}).get().tensors.at(0);
    return troupe::call_reply{{y * weight}};
  });
  auto x = torch::tensor({1.0, 5.0}, torch::requires_grad());
  troupe::context pass(a);
  auto y = a.peer("b").call("through_a", {x}).get().tensors.at(0);
  pass.backward({y.sum()}).get();
  BOOST_TEST(same(pass.gradient(x), torch::tensor({8.0, 18.0})));
}

BOOST_AUTO_TEST_CASE(asynchronous_calls_run_in_the_order_in_which_they_were_made) {
  std::vector<troupe::future<troupe::call_reply>> replies;
  auto x = torch::tensor({1.0, 5.0}, torch::requires_grad());
  troupe::context pass(a);
  for (int i = 0; i < 16; ++i) replies.push_back(a.peer("b").call("times_weight", {x * i}));
  auto sum = torch::zeros({2});
  for (auto& each : replies) sum = sum + each.get().tensors.at(0);
  pass.backward({sum.sum()}).get();
  BOOST_TEST(same(pass.gradient(x), torch::tensor({240.0, 360.0})));
}

BOOST_AUTO_TEST_CASE(a_peer_that_stops_fails_the_call_that_waits_for_it) {
  auto other = std::make_unique<troupe::node>(named("c"));
  std::promise<void> started;
  std::promise<void> let_go;
  other->functions().add("wait", [&](troupe::call_arguments&) {
    started.set_value();
    let_go.get_future().wait();
    return troupe::call_reply{};
  });
  a.join("127.0.0.1", other->port());
  auto reply = a.peer("c").call("wait");
  started.get_future().wait();
  std::thread stopper([&] { other->stop(); });
  BOOST_CHECK_EXCEPTION(reply.get(), troupe::error, [](const troupe::error& e) {
    return e.code() == troupe::errc::peer_down && std::string(e.what()).find("'c'") != std::string::npos;
  });
  let_go.set_value();
  stopper.join();
}

BOOST_AUTO_TEST_CASE(a_call_fails_at_its_deadline_and_one_that_waited_too_long_does_not_run) {
  std::promise<void> release;
  auto released = release.get_future().share();
  std::atomic<int> ran{0};
  b.functions().add("wait", [released](troupe::call_arguments&) {
    released.wait();
    return troupe::call_reply{};
  });
  b.functions().add("count", [&ran](troupe::call_arguments&) {
    ++ran;
    return troupe::call_reply{};
  });
  auto busy = a.peer("b").call("wait");
  auto late = a.peer("b").call("count", {}, {}, {}, 50ms);
  BOOST_CHECK_EXCEPTION(late.get(), troupe::error, [](const troupe::error& e) {
    return e.code() == troupe::errc::deadline_passed &&
           std::string(e.what()).find("no answer within 0.05 s") != std::string::npos;
  });
  release.set_value();
  busy.get();
  a.peer("b").call("times_weight", {torch::ones({2})}).get();  // the only worker has finished all calls before this one
  BOOST_TEST(ran == 0);
}

BOOST_AUTO_TEST_CASE(a_node_joins_those_that_its_settings_name_and_an_ipv6_address_too) {
  auto six = named("six");
  six.host = "::1";
  troupe::node first(six);
  auto options = named("second");
  options.join = {"[::1]:" + std::to_string(first.port())};
  troupe::node second(options);
  BOOST_TEST(second.peer("six").name() == "six");
}

BOOST_AUTO_TEST_CASE(a_message_that_cannot_be_read_is_answered_with_the_reason) {
  troupe::call_request contradiction;
  contradiction.what = troupe::requests::function{"times_weight"};
  contradiction.payload.tensors = {torch::ones({2})};
  contradiction.payload.requires_grad = {true, true};
  a.peer("b").call("times_weight", {torch::ones({2})}).get();
  caf::scoped_actor self{a.system()};
  std::string text;
  self->request(caf::actor_cast<caf::actor>(troupe::services_of(a).directory.gateway(b.id())), 10s, contradiction)
    .receive([](const troupe::call_result&) {}, [&](const caf::error& reason) { text = troupe::to_exception(reason).what(); });
  BOOST_TEST(text.find("requires_grad has not as many entries as there are tensors") != std::string::npos, text);
  BOOST_TEST(same(a.peer("b").call("times_weight", {torch::ones({2})}).get().tensors.at(0), weight));
}

BOOST_AUTO_TEST_CASE(anomaly_mode_shows_where_a_function_was_made_and_the_calls_that_led_there) {
  a.functions().add("root",
                    [](troupe::call_arguments& arguments) { return troupe::call_reply{{arguments.tensors.at(0).sqrt() * 0}}; });
  b.functions().add("through_a", [this](troupe::call_arguments& arguments) {
    return troupe::call_reply{{b.peer("a").call("root", {arguments.tensors.at(0) * weight}).get().tensors.at(0)}};
  });
  const torch::autograd::DetectAnomalyGuard detect;
  auto x = torch::zeros({2}, torch::kDouble).requires_grad_();
  troupe::context pass(a);
  auto y = a.peer("b").call("through_a", {x}).get().tensors.at(0);
  BOOST_CHECK_EXCEPTION(pass.backward({y.sum()}).get(), troupe::error, [](const troupe::error& e) {
    const std::string text = e.what();
    for (const auto* part : {"backward on node 'a' failed in SqrtBackward0", "returned nan values in its 0th output",
                             "It was made where node 'a' called 'through_a' on node 'b', which called 'root' on node 'a'.",
                             "Traceback of forward call that caused the error"})
      BOOST_TEST(text.find(part) != text.npos, "no '" << part << "' in: " << text.substr(0, 2000));
    return true;
  });
}

BOOST_AUTO_TEST_CASE(a_call_made_in_anomaly_mode_is_watched_where_it_runs) {
  b.functions().add("is_watched", [](troupe::call_arguments&) {
    return troupe::call_reply{{}, {{"watched", torch::autograd::AnomalyMode::is_enabled()}}};
  });
  a.peer("b").call("is_watched").get();
  caf::scoped_actor self{a.system()};
  for (const auto* calls : {"", "node 'a' called 'is_watched' on node 'b'"}) {  // requests as another process would send them
    troupe::call_request request;
    request.what = troupe::requests::function{"is_watched"};
    request.calls = calls;
    bool watched = false;
    self->request(caf::actor_cast<caf::actor>(troupe::services_of(a).directory.gateway(b.id())), 10s, request)
      .receive([&](const troupe::call_result& result) { watched = troupe::get<bool>(result.values, "watched"); },
               [&](const caf::error& reason) { BOOST_FAIL(troupe::to_exception(reason).what()); });
    BOOST_TEST(watched == (*calls != 0));
  }
  BOOST_TEST(!torch::autograd::AnomalyMode::is_enabled());
}

BOOST_AUTO_TEST_CASE(nested_contexts_on_one_thread_are_refused) {
  troupe::context pass(a);
  BOOST_CHECK_THROW(troupe::context{a}, troupe::error);
}

BOOST_AUTO_TEST_SUITE_END()
