// SPDX-License-Identifier: BSD-3-Clause
// What a program may do wrong or at an unexpected moment. The program gets an error at once, and never hangs.
#include <boost/test/unit_test.hpp>

#include <torch/torch.h>

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include <troupe/actors/objects/object_store.hpp>
#include <troupe/messages/message_size.hpp>
#include <troupe/troupe.hpp>

#include "actors/loopback_nodes.hpp"

using namespace std::chrono_literals;

namespace {

using troupe::errc;
using troupe::test::becomes_idle;
using troupe::test::loopback_settings;
using troupe::test::says;

constexpr auto hang = 10s;

struct two_nodes_to_misuse {
  two_nodes_to_misuse() {
    for (auto* each : {&a, &b})
      each->functions().add(
        "twice", [](troupe::call_arguments& arguments) { return troupe::call_reply{{arguments.tensors.at(0) * 2}}; });
    a.join("127.0.0.1", b.port());
  }

  at::Tensor twice(const at::Tensor& tensor) { return a.peer("b").call("twice", {tensor}).get().tensors.at(0); }

  /// Runs `what` in a continuation on node "a", on the thread that brings results. Returns the text of the exception that
  /// `what` throws, or an empty text.
  std::string in_a_continuation(const std::function<void()>& what) {
    std::promise<void> go;
    auto gone = go.get_future().share();
    const auto name = "wait" + std::to_string(++waits);
    b.functions().add(name, [gone](troupe::call_arguments&) {
      gone.wait();
      return troupe::call_reply{};
    });
    auto text = std::make_shared<std::promise<std::string>>();
    a.peer("b").call(name).then([text, what](auto) { text->set_value(text_of(what)); });
    go.set_value();
    auto said = text->get_future();
    BOOST_REQUIRE((said.wait_for(hang) == std::future_status::ready));
    return said.get();
  }

  static std::string text_of(const std::function<void()>& what) {
    try {
      what();
    } catch (const troupe::error& refused) {
      return refused.what();
    }
    return {};
  }

  int waits = 0;
  troupe::node a{loopback_settings("a")};
  troupe::node b{loopback_settings("b")};
  at::Tensor x = torch::ones({2}, torch::requires_grad());
};

auto is(errc code) {
  return [code](const troupe::error& e) {
    BOOST_TEST_MESSAGE(e.what());
    return e.code() == code;
  };
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(misuse, two_nodes_to_misuse)

BOOST_AUTO_TEST_CASE(a_node_that_has_stopped_says_so_whatever_it_is_asked) {
  auto other = a.peer("b");
  auto mine = a.self();
  a.stop();
  a.stop();
  BOOST_CHECK_EXCEPTION(other.call("twice", {x}).get(hang), troupe::error, is(errc::stopping));
  BOOST_CHECK_EXCEPTION(mine.call("twice", {x}).get(hang), troupe::error, is(errc::stopping));
  BOOST_CHECK_EXCEPTION(a.peer("b"), troupe::error, is(errc::stopping));
  BOOST_CHECK_EXCEPTION(a.join("127.0.0.1", b.port()), troupe::error, is(errc::stopping));
  BOOST_CHECK_EXCEPTION(a.status(), troupe::error, is(errc::stopping));
  BOOST_CHECK_EXCEPTION(other.status(), troupe::error, is(errc::stopping));
  BOOST_CHECK_EXCEPTION(troupe::join_graphs(other, {x}), troupe::error, is(errc::stopping));
  BOOST_CHECK_EXCEPTION(other.actor("any"), troupe::error, is(errc::stopping));
  BOOST_CHECK_EXCEPTION(a.collect_trace({}), troupe::error, is(errc::stopping));
  BOOST_CHECK_EXCEPTION(troupe::context{a}, troupe::error, is(errc::stopping));
  BOOST_TEST(!troupe::context::current());
}

BOOST_AUTO_TEST_CASE(a_node_may_stop_while_a_context_is_open) {
  {
    troupe::context pass(a);
    const auto y = twice(x);
    a.stop();
    BOOST_CHECK_EXCEPTION(pass.backward({y.sum()}).get(hang), troupe::error, is(errc::stopping));
    BOOST_CHECK_EXCEPTION(pass.gradient(x), troupe::error, is(errc::stopping));
  }
  BOOST_TEST(becomes_idle(b));
}

BOOST_AUTO_TEST_CASE(a_node_is_not_stopped_by_what_runs_on_it) {
  b.functions().add("stop", [](troupe::call_arguments& arguments) {
    arguments.here.stop();
    return troupe::call_reply{};
  });
  BOOST_CHECK_EXCEPTION(a.peer("b").call("stop").get(hang), troupe::error, says("another thread"));
  BOOST_TEST(in_a_continuation([this] { a.stop(); }).find("on another thread") != std::string::npos);
  b.functions().add("stop_in_backward", [](troupe::call_arguments& arguments) {
    auto y = arguments.tensors.at(0) * 2;
    y.register_hook([&here = arguments.here](at::Tensor) { here.stop(); });
    return troupe::call_reply{{y}};
  });
  troupe::context pass(a);
  const auto y = a.peer("b").call("stop_in_backward", {x}).get().tensors.at(0);
  BOOST_CHECK_EXCEPTION(pass.backward({y.sum()}).get(hang), troupe::error, says("'b'", "another thread"));
  // The thread that calls backward() runs the first functions itself.
  auto here = x * 2;
  here.register_hook([this](const at::Tensor&) { a.stop(); });
  BOOST_CHECK_EXCEPTION(pass.backward({(twice(x) + here).sum()}).get(hang), troupe::error, says("'a'", "another thread"));
}

BOOST_AUTO_TEST_CASE(a_continuation_finds_who_is_known_and_does_not_wait_for_who_is_not) {
  std::string found;
  BOOST_TEST(in_a_continuation([&] { found = a.peer("b").name(); }).empty());
  BOOST_TEST(found == "b");
  for (const auto& wait :
       {std::function<void()>([this] { a.peer("nobody"); }), std::function<void()>([this] { a.join("127.0.0.1", b.port()); }),
        std::function<void()>([this] { a.self().actor("any"); }), std::function<void()>([this] { a.collect_trace({}); })})
    BOOST_TEST(in_a_continuation(wait).find("a continuation waits") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(who_hears_that_a_peer_is_down_can_not_wait_and_may_throw) {
  auto c = std::make_unique<troupe::node>(loopback_settings("c"));
  a.join("127.0.0.1", c->port());
  std::promise<std::string> waited;
  a.on_peer_down([&](const std::string&, const std::string&) {
    waited.set_value(text_of([this] { a.self().call("twice", {x}).get(hang); }));
    throw std::runtime_error("the handler throws");
  });
  c = nullptr;
  auto text = waited.get_future();
  BOOST_REQUIRE((text.wait_for(hang) == std::future_status::ready));
  a.on_peer_down({});
  BOOST_TEST(text.get().find("on_peer_down") != std::string::npos);
  BOOST_TEST(at::equal(twice(torch::ones({2})), torch::full({2}, 2.0)));
}

BOOST_AUTO_TEST_CASE(results_of_another_context_are_refused_by_name) {
  at::Tensor y;
  std::string earlier;
  {
    troupe::context first(a);
    y = twice(x);
    earlier = to_string(first.id());
  }
  troupe::context second(a);
  BOOST_CHECK_EXCEPTION(second.backward({(y + twice(x)).sum()}).get(hang), troupe::error,
                        says("another context, " + earlier, to_string(second.id())));
  second.backward({twice(x).sum()}).get();
  BOOST_TEST(at::equal(second.gradient(x), torch::full({2}, 2.0)));
}

BOOST_AUTO_TEST_CASE(a_second_pass_over_a_graph_that_was_not_kept_is_told_how_to_keep_it) {
  troupe::context pass(a);
  const auto y = twice(x.exp()).sum();
  pass.backward({y}).get();
  BOOST_CHECK_EXCEPTION(pass.backward({y}).get(hang), troupe::error, says("a second time", "keep_graph"));
  BOOST_TEST(at::equal(pass.gradient(x), 2 * x.detach().exp()));
}

BOOST_AUTO_TEST_CASE(parameters_are_not_stepped_while_a_pass_runs) {
  std::promise<void> go;
  auto gone = go.get_future().share();
  b.functions().add("slow_backward", [gone](troupe::call_arguments& arguments) {
    auto y = arguments.tensors.at(0) * 2;
    y.register_hook([gone](at::Tensor) { gone.wait(); });
    return troupe::call_reply{{y}};
  });
  troupe::optimizer optimizer{a, {"sgd", {{"lr", 1.0}}}, {}, {{"x", x}}};
  troupe::context pass(a);
  auto running = pass.backward({a.peer("b").call("slow_backward", {x}).get().tensors.at(0).sum()});
  BOOST_TEST(pass.running());
  BOOST_CHECK_EXCEPTION(optimizer.step(pass), troupe::error, says("optimizer::step", "still running"));
  BOOST_CHECK_EXCEPTION(optimizer.gather(pass), troupe::error, says("optimizer::gather", "still running"));
  go.set_value();
  running.get();
  BOOST_TEST(!pass.running());
  optimizer.step(pass);
  BOOST_TEST(at::equal(x.detach(), torch::full({2}, -1.0)));
}

BOOST_AUTO_TEST_CASE(a_context_that_ends_on_another_thread_leaves_its_own_free) {
  auto pass = std::make_unique<troupe::context>(a);
  twice(x);
  std::thread([&] { pass.reset(); }).join();
  BOOST_TEST(!troupe::context::current());
  {
    troupe::context next(a);
    next.backward({twice(x).sum()}).get();
    BOOST_TEST(at::equal(next.gradient(x), torch::full({2}, 2.0)));
  }
  BOOST_TEST((becomes_idle(a) && becomes_idle(b)));
}

BOOST_AUTO_TEST_CASE(a_context_of_an_ended_thread_leaves_the_one_of_a_later_thread_with_the_same_id_open) {
  bool had_same_id = false;
  for (int i = 0; i < 100 && !had_same_id; ++i) {
    std::unique_ptr<troupe::context> pass;
    std::thread::id id;
    std::thread([&] {
      id = std::this_thread::get_id();
      pass = std::make_unique<troupe::context>(a);
    }).join();
    troupe::context_id opened;
    troupe::context_id current;
    std::thread([&] {
      had_same_id = std::this_thread::get_id() == id;
      const troupe::context next(a);
      pass.reset();
      opened = next.id();
      current = troupe::context::current();
    }).join();
    BOOST_TEST((opened == current));
  }
  BOOST_TEST(had_same_id);
}

BOOST_AUTO_TEST_CASE(complex_roots_are_checked_as_libtorch_does) {
  troupe::context pass(a);
  const auto z = torch::ones({1}, torch::kComplexFloat).requires_grad_();
  troupe::backward_options real;
  real.gradients = {torch::ones({1})};
  BOOST_CHECK_EXCEPTION(pass.backward({twice(z)}), troupe::error, says("root 0 is ComplexFloat", "is real"));
  BOOST_CHECK_EXCEPTION(pass.backward({twice(z)}, real), troupe::error, says("ComplexFloat, its gradient Float"));
}

BOOST_AUTO_TEST_CASE(an_object_whose_owner_went_down_while_its_call_waited_is_dropped) {
  struct nothing : troupe::module {
    troupe::call_reply call(const std::string&, troupe::call_arguments&) override { return {}; }
    troupe::named_tensors parameters() override { return {}; }
  };
  std::promise<void> made;
  std::promise<void> go;
  troupe::add_module_type(b, "nothing", [&](const troupe::attributes&) {
    made.set_value();
    go.get_future().wait();
    return std::make_shared<nothing>();
  });
  {
    auto c = std::make_unique<troupe::node>(loopback_settings("c"));
    c->join("127.0.0.1", b.port());
    auto creating =
      std::async(std::launch::async, [&, there = c->peer("b")] { return text_of([&] { there.create("nothing"); }); });
    made.get_future().wait();
    c->stop();
    creating.get();
  }
  while (b.peers().size() > 1) std::this_thread::yield();
  go.set_value();
  b.self().call("twice", {x}).get();  // the only worker has finished the creation before
  BOOST_TEST(b.objects().size() == 0u);
}

BOOST_AUTO_TEST_CASE(a_tensor_that_did_not_come_is_told_with_how_many_did) {
  b.functions().add("sum", [](troupe::call_arguments& arguments) {
    const auto first = arguments.tensor(0);  // C++ gives the operands of + no order
    return troupe::call_reply{{first + arguments.tensor(1)}};
  });
  const auto refusal = [&](std::vector<at::Tensor> tensors) {
    return text_of([&] { a.peer("b").call("sum", std::move(tensors)).get(); });
  };
  BOOST_TEST(refusal({}) == "call of 'sum' on node 'b' failed: 'sum' expected at least 1 tensor, got none");
  BOOST_TEST(refusal({x}) == "call of 'sum' on node 'b' failed: 'sum' expected at least 2 tensors, got 1");
  const auto reply = a.peer("b").call("sum", {x, x}).get();
  BOOST_TEST(at::equal(reply.tensor(0), 2 * x));
  BOOST_CHECK_EXCEPTION(reply.tensor(1), troupe::error, is(errc::misuse));
  BOOST_TEST(text_of([&] { reply.tensor(1); }) == "expected a reply of at least 2 tensors, got 1");
  b.functions().add("silent", [](troupe::call_arguments&) { return troupe::call_reply{}; });
  BOOST_TEST(text_of([&] { a.peer("b").call("silent").get().tensor(0); }) == "expected a reply of at least 1 tensor, got none");
}

// What is too large for a message is refused where it is made: at once in a call, and with the error of the call in an answer.
BOOST_AUTO_TEST_CASE(more_than_a_message_may_have_is_refused_before_it_is_sent) {
  troupe::attributes values;
  for (std::size_t i = 0; i <= troupe::max_attributes; ++i) values[std::to_string(i)] = true;
  const std::vector<at::Tensor> tensors(troupe::max_tensors + 1, x);
  b.functions().add("values", [&](troupe::call_arguments&) { return troupe::call_reply{{}, values}; });
  b.functions().add("tensors", [&](troupe::call_arguments&) { return troupe::call_reply{tensors}; });
  const auto to = a.peer("b");
  BOOST_CHECK_EXCEPTION(to.call("twice", {x}, values), troupe::error,
                        says("the call of 'twice' on node 'b'", "it has 65537 values, at most 65536"));
  BOOST_CHECK_EXCEPTION(to.call("twice", tensors), troupe::error,
                        says("the call of 'twice' on node 'b'", "it has 65537 tensors, at most 65536"));
  BOOST_CHECK_EXCEPTION(to.call("values").get(hang), troupe::error,
                        says("the result of 'values' on node 'b'", "it has 65537 values, at most 65536"));
  BOOST_CHECK_EXCEPTION(to.call("tensors").get(hang), troupe::error,
                        says("the result of 'tensors' on node 'b'", "it has 65537 tensors, at most 65536"));
  values.erase("0");
  BOOST_TEST((to.call("values").get(hang).values == values));
}

BOOST_AUTO_TEST_CASE(what_modules_ask_of_a_node_is_no_function_of_it) {
  BOOST_CHECK_EXCEPTION(a.peer("b").call("troupe.create").get(hang), troupe::error,
                        says("'b'", "no function 'troupe.create' is registered; there are: twice"));
}

BOOST_AUTO_TEST_CASE(functions_of_the_node_itself_are_not_suggested_for_an_unknown_name) {
  BOOST_CHECK_EXCEPTION(a.peer("b").call("thrice").get(), troupe::error, [](const troupe::error& e) {
    const std::string text = e.what();
    return text.find("there are: twice") != text.npos && text.find("troupe.") == text.npos;
  });
}

BOOST_AUTO_TEST_SUITE_END()
