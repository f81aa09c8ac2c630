// SPDX-License-Identifier: BSD-3-Clause
// Failures on one of three nodes, in each phase of forward and backward. A failure gives one error, which names the node.
// Nothing is left on any node, and the context stays usable.
#include <boost/test/unit_test.hpp>

#include <torch/torch.h>

#include <chrono>
#include <future>
#include <memory>
#include <string>

#include <caf/scoped_actor.hpp>
#include <caf/sec.hpp>

#include <troupe/actors/node_access.hpp>
#include <troupe/actors/passes/graph_task_actor.hpp>
#include <troupe/actors/passes/pass_terms.hpp>
#include <troupe/troupe.hpp>

#include "actors/loopback_nodes.hpp"

using namespace std::chrono_literals;

namespace {

using troupe::test::becomes_idle;
using troupe::test::loopback_settings;
using troupe::test::says;

/// A function whose backward returns a gradient of the wrong shape.
struct misshapen : torch::autograd::Function<misshapen> {
  static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& x) { return x * 2; }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*, torch::autograd::variable_list) {
    return {torch::ones({3})};
  }
};

/// Node "a" calls "b", and "b" calls "c". Each node doubles the tensor. The values of the call say which node fails, and how.
struct nodes_that_fail {
  nodes_that_fail() {
    for (auto* each : {&a, &b, &c}) add_functions(*each);
    b.join("127.0.0.1", c.port());
    a.join("127.0.0.1", b.port());
    a.peer("c");
  }

  static void add_functions(troupe::node& here) {
    here.functions().add("go", [](troupe::call_arguments& arguments) {
      auto values = arguments.values;
      auto way = troupe::get<std::string>(values, "way");
      auto y = twice(arguments.here, arguments.tensors.at(0), values);
      if (way.empty()) return troupe::call_reply{{y}};
      values["way"] = way.substr(1);
      return troupe::call_reply{{arguments.here.peer(way.substr(0, 1)).call("go", {y}, values).get().tensors.at(0)}};
    });
  }

  /// `where`: the node that fails; `how`: "throw", "hook" or "shape".
  static at::Tensor twice(troupe::node& here, const at::Tensor& x, const troupe::attributes& values) {
    auto y = x * 2;
    if (troupe::get<std::string>(values, "where") != here.name()) return y;
    const auto how = troupe::get<std::string>(values, "how");
    if (how == "throw") throw std::runtime_error("no luck");
    if (how == "hook") y.register_hook([](at::Tensor) -> at::Tensor { throw std::runtime_error("hook refuses"); });
    if (how == "shape") return misshapen::apply(x);
    return y;
  }

  static troupe::attributes failing(const std::string& where, const std::string& how, const std::string& way = "c") {
    return {{"where", where}, {"how", how}, {"way", way}};
  }

  at::Tensor forward(const troupe::attributes& values) {
    return a.peer("b").call("go", {twice(a, x, values)}, values).get().tensors.at(0).sum();
  }

  /// Whether no node works on the pass any more. The context may still be open.
  bool all_dropped_the_pass() {
    for (auto* each : {&a, &b, &c}) {
      const auto until = std::chrono::steady_clock::now() + 5s;
      while (each->status().graph_tasks > 0)
        if (std::chrono::steady_clock::now() > until) return false;
    }
    return true;
  }

  bool nothing_is_left() { return becomes_idle(a) && becomes_idle(b) && becomes_idle(c); }

  troupe::node a{loopback_settings("a")};
  troupe::node b{loopback_settings("b")};
  troupe::node c{loopback_settings("c")};
  at::Tensor x = torch::ones({2}, torch::requires_grad());
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(failures, nodes_that_fail)

// OG-4
BOOST_AUTO_TEST_CASE(a_deadline_of_another_node_is_not_taken_for_the_callers_own) {
  std::promise<void> let_go;
  const auto gone = let_go.get_future().share();
  c.functions().add("wait", [gone](troupe::call_arguments&) {
    gone.wait();
    return troupe::call_reply{};
  });
  c.functions().add("stale", [](troupe::call_arguments&) -> troupe::call_reply {
    throw troupe::error(troupe::errc::deadline_passed, "the feed is 3 h old");
  });
  for (auto* each : {&a, &b})
    each->functions().add("pass_on", [](troupe::call_arguments& arguments) {
      auto way = troupe::get<std::string>(arguments.values, "way");
      const auto what = troupe::get<std::string>(arguments.values, "what");
      const auto next = arguments.here.peer(way.substr(0, 1));
      if (way.size() == 1) return next.call(what, {}, {}, {}, 100ms).get();
      return next.call("pass_on", {}, {{"way", way.substr(1)}, {"what", what}}).get();
    });
  const auto text = [&](const std::string& what, const std::string& way) {
    try {
      a.peer(way.substr(0, 1)).call("pass_on", {}, {{"way", way.substr(1)}, {"what", what}}, {}, 60s).get();
    } catch (const troupe::error& e) {
      BOOST_TEST((e.code() == troupe::errc::deadline_passed));
      return std::string(e.what());
    }
    return std::string();
  };
  const std::string of_b = "call of 'pass_on' on node 'b' failed: ";
  const std::string of_a = "call of 'pass_on' on node 'a' failed: ";
  const std::string stale = "call of 'stale' on node 'c' failed: the feed is 3 h old";
  const std::string late = "call of 'wait' on node 'c' failed: no answer within 0.1 s";
  BOOST_TEST(text("stale", "bc") == of_b + stale);
  BOOST_TEST(text("stale", "abc") == of_a + of_b + stale);
  BOOST_TEST(text("stale", "babc") == of_b + of_a + of_b + stale);
  BOOST_TEST(text("wait", "babc") == of_b + of_a + of_b + late);
  let_go.set_value();
}

BOOST_AUTO_TEST_CASE(a_pass_on_behalf_of_a_call_ends_with_the_call) {
  std::promise<void> let_go;
  const auto gone = let_go.get_future().share();
  c.functions().add("hold_backward", [gone](troupe::call_arguments& arguments) {
    auto y = arguments.tensor(0) * 2;
    y.register_hook([gone](const at::Tensor& gradient) {
      gone.wait();
      return gradient;
    });
    return troupe::call_reply{{y}};
  });
  b.functions().add("pass", [this](troupe::call_arguments&) {
    troupe::context pass(b);
    const auto y = b.peer("c").call("hold_backward", {x}).get().tensor(0).sum();
    pass.backward({y}, {.deadline = 60s}).get();
    return troupe::call_reply{};
  });
  BOOST_CHECK_THROW(a.peer("b").call("pass", {}, {}, {}, 300ms).get(), troupe::error);
  BOOST_TEST(becomes_idle(b));
  let_go.set_value();
  BOOST_TEST(nothing_is_left());
}

BOOST_AUTO_TEST_CASE(a_hook_that_speaks_of_a_deadline_is_not_taken_for_the_deadline_of_the_pass) {  // OG-4
  b.functions().add("stale_in_backward", [](troupe::call_arguments& arguments) {
    auto y = arguments.tensor(0) * 2;
    y.register_hook(
      [](at::Tensor) -> at::Tensor { throw troupe::error(troupe::errc::deadline_passed, "the feed is 3 h old"); });
    return troupe::call_reply{{y}};
  });
  troupe::context pass(a);
  const auto y = a.peer("b").call("stale_in_backward", {x}).get().tensor(0).sum();
  BOOST_CHECK_EXCEPTION(pass.backward({y}).get(), troupe::error, [](const troupe::error& e) {
    const std::string text = e.what();
    return text.starts_with("backward on node 'b' failed") && text.ends_with("the feed is 3 h old");
  });
}

BOOST_AUTO_TEST_CASE(a_function_that_throws_below_a_call_is_named_and_the_context_goes_on) {
  {
    troupe::context pass(a);
    BOOST_CHECK_EXCEPTION(forward(failing("c", "throw")), troupe::error, says("'c'", "no luck"));
    BOOST_CHECK_EXCEPTION(forward(failing("b", "throw")), troupe::error, says("'b'", "no luck"));
    pass.backward({forward(failing("none", ""))}).get();
    BOOST_TEST(at::equal(pass.gradient(x), torch::full({2}, 8.0)));
  }
  BOOST_TEST(nothing_is_left());
}

BOOST_AUTO_TEST_CASE(a_hook_that_throws_on_any_node_ends_the_pass_everywhere_and_the_context_goes_on) {
  {
    troupe::context pass(a);
    double passes = 0;
    for (const std::string where : {"a", "b", "c"}) {
      auto bad = forward(failing(where, "hook"));
      BOOST_CHECK_EXCEPTION(pass.backward({bad}).get(), troupe::error, says("'" + where + "'", "hook refuses"));
      BOOST_TEST(all_dropped_the_pass(), "after a hook on " << where);
      pass.backward({forward(failing("none", ""))}).get();
      BOOST_TEST(at::equal(pass.gradient(x), torch::full({2}, 8.0 * ++passes)));
    }
  }
  BOOST_TEST(nothing_is_left());
}

BOOST_AUTO_TEST_CASE(a_gradient_of_the_wrong_shape_is_named_with_both_shapes) {
  {
    troupe::context pass(a);
    for (const std::string where : {"a", "b", "c"}) {
      auto bad = forward(failing(where, "shape"));
      BOOST_CHECK_EXCEPTION(pass.backward({bad}).get(), troupe::error, says("[3]", "[2]"));
      BOOST_CHECK_EXCEPTION(pass.backward({forward(failing(where, "shape"))}).get(), troupe::error,
                            says("'" + where + "'", "misshapen"));
      BOOST_TEST(all_dropped_the_pass(), "after a gradient from " << where);
    }
    pass.backward({forward(failing("none", ""))}).get();
    BOOST_TEST(at::equal(pass.gradient(x), torch::full({2}, 8.0)));
  }
  BOOST_TEST(nothing_is_left());
}

BOOST_AUTO_TEST_CASE(a_deadline_that_passes_in_a_hook_ends_the_pass_everywhere) {
  std::promise<void> let_go;
  auto released = let_go.get_future().share();
  c.functions().add("slow_backward", [released](troupe::call_arguments& arguments) {
    auto y = arguments.tensors.at(0) * 2;
    y.register_hook([released](at::Tensor) { released.wait(); });
    return troupe::call_reply{{y}};
  });
  {
    troupe::context pass(a);
    auto bad = a.peer("c").call("slow_backward", {x}).get().tensors.at(0).sum();
    troupe::backward_options options;
    options.deadline = 100ms;
    BOOST_CHECK_EXCEPTION(pass.backward({bad}, options).get(), troupe::error, says("0.1 s", "'c'"));
    let_go.set_value();
    BOOST_TEST(all_dropped_the_pass());
    pass.backward({forward(failing("none", ""))}).get();
    BOOST_TEST(at::equal(pass.gradient(x), torch::full({2}, 8.0)));
  }
  BOOST_TEST(nothing_is_left());
}

BOOST_AUTO_TEST_CASE(a_node_that_leaves_ends_its_contexts_with_a_clear_error) {
  auto d = std::make_unique<troupe::node>(loopback_settings("d"));
  add_functions(*d);
  {
    troupe::context early(a);
    d->join("127.0.0.1", c.port());
    // Node "d" is called at once, and calls node "b" itself.
    auto y = a.peer("d").call("go", {x}, failing("none", "", "b")).get().tensors.at(0).sum();
    d->stop();
    BOOST_CHECK_EXCEPTION(early.backward({y}).get(), troupe::error, says("'d'", ""));
    BOOST_CHECK_EXCEPTION(a.peer("d", 100ms), troupe::error, says("'d'", "100 ms"));
    early.backward({forward(failing("none", ""))}).get();
    BOOST_TEST(at::equal(early.gradient(x), torch::full({2}, 8.0)));
  }
  BOOST_TEST(nothing_is_left());
}

BOOST_AUTO_TEST_CASE(who_asks_a_graph_task_of_a_pass_that_has_ended_is_told_at_once) {
  const troupe::context pass(a);
  const auto record = troupe::services_of(a).contexts.find(pass.id()).record;
  const auto task = troupe::passes::spawn_graph_task(
    troupe::services_of(a), troupe::passes::make_terms(record, record->follow({1}).value(), false, false));
  caf::scoped_actor self{a.system()};
  self->send(task, troupe::support::close_atom::value);
  self->wait_for(task);
  caf::error told;
  self->request(task, 3s, troupe::abort_pass{pass.id(), {1}})
    .receive([](const troupe::pass_aborted&) {}, [&](const caf::error& reason) { told = reason; });
  BOOST_TEST((told == caf::sec::request_receiver_down));
}

BOOST_AUTO_TEST_SUITE_END()
