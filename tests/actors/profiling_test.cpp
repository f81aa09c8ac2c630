// SPDX-License-Identifier: BSD-3-Clause
// With profiling on, a node's trace has the spans and operators of the calls and passes that the node started, on all nodes.
#include <boost/test/unit_test.hpp>

#include <torch/torch.h>

#include <algorithm>
#include <limits>

#include <caf/scoped_actor.hpp>

#include <troupe/actors/node_access.hpp>
#include <troupe/actors/tracing/operator_log.hpp>
#include <troupe/troupe.hpp>

#include "linear_cluster.hpp"

namespace {

using troupe::tracing::trace_span;
using span_list = std::vector<trace_span>;

struct profiled_nodes {
  profiled_nodes() {
    b.functions().add("outer", [this](troupe::call_arguments& arguments) {
      auto next = b.peer("c").call("inner", {arguments.tensors.at(0).exp()}).get().tensors.at(0);
      return troupe::call_reply{{next * 2}};
    });
    c.functions().add("inner",
                      [](troupe::call_arguments& arguments) { return troupe::call_reply{{arguments.tensors.at(0).tanh()}}; });
    b.join("127.0.0.1", c.port());
    a.join("127.0.0.1", b.port());
    a.join("127.0.0.1", c.port());
    b.peer("c");
  }

  /// The spans that the tracer of the node has.
  span_list of(troupe::node& node) {
    caf::scoped_actor self{node.system()};
    span_list result;
    self->request(troupe::services_of(node).actors.tracer, std::chrono::seconds(10), troupe::support::collect_atom::value)
      .receive([&](const troupe::tracing::trace_log& log) { result = log.spans; }, [](const caf::error&) {});
    return result;
  }

  void run() {
    troupe::context pass(a);
    auto x = torch::ones({2}, torch::requires_grad());
    auto y = a.peer("b").call("outer", {x}).get().tensors.at(0);
    pass.backward({y.sum()}).get();
  }

  troupe::node a{troupe::test::named_settings("a")};
  troupe::node b{troupe::test::named_settings("b")};
  troupe::node c{troupe::test::named_settings("c")};
};

const trace_span* find_span(const span_list& all, const std::string& name, const std::string& category) {
  const auto found =
    std::find_if(all.begin(), all.end(), [&](const auto& each) { return each.name == name && each.category == category; });
  return found == all.end() ? nullptr : &*found;
}

bool lies_in(const trace_span& inner, const trace_span& outer) {
  return inner.track == outer.track && outer.begin_ns <= inner.begin_ns && inner.begin_ns <= inner.end_ns &&
         inner.end_ns <= outer.end_ns;
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(profiling, profiled_nodes)

BOOST_AUTO_TEST_CASE(an_answer_brings_what_ran_for_it_nested_calls_and_operators_included) {
  a.set_profiling(true);
  run();
  const auto all = of(a);
  const std::pair<const char*, const char*> chain[] = {
    {"outer", "request"}, {"b: outer", "call"}, {"inner", "request"}, {"c: inner", "call"}, {"aten::tanh", "operator"}};
  const trace_span* outer = nullptr;
  for (const auto& [name, category] : chain) {
    const auto* found = find_span(all, name, category);
    BOOST_REQUIRE_MESSAGE(found != nullptr, "no " << category << " '" << name << "' among " << all.size() << " spans");
    BOOST_TEST((outer == nullptr || lies_in(*found, *outer)), category << " '" << name << "' lies elsewhere");
    outer = found;
  }
  const auto* exponential = find_span(all, "aten::exp", "operator");
  BOOST_REQUIRE(exponential != nullptr);
  BOOST_TEST(lies_in(*exponential, *find_span(all, "b: outer", "call")));
  BOOST_TEST(exponential->end_ns <= find_span(all, "inner", "request")->begin_ns);
}

BOOST_AUTO_TEST_CASE(a_pass_brings_what_ran_for_it_on_every_node) {
  a.set_profiling(true);
  run();
  // Another node sends the spans of a burst in a message of their own, which may come after the pass is complete.
  for (const std::string name : {"b", "c"}) {
    const std::string function = name == "b" ? "ExpBackward0" : "TanhBackward0";
    span_list all;
    const auto has_arrived = [&] {
      const auto is_inside_a_burst = [&](const trace_span& inner) {
        return inner.name.find(function) != std::string::npos &&
               std::any_of(all.begin(), all.end(), [&](const trace_span& outer) {
                 return outer.name == name + ": backward" && outer.track == "backward on " + name && lies_in(inner, outer);
               });
      };
      return std::any_of(all.begin(), all.end(), is_inside_a_burst);
    };
    for (int tries = 0; tries < 2000 && !has_arrived(); ++tries) {
      troupe::test::after_others(a.peer(name)).get();
      all = of(a);
    }
    BOOST_TEST(has_arrived(), "no " << function << " of node " << name << " among " << all.size() << " spans");
  }
  BOOST_TEST((find_span(of(a), "backward", "backward") != nullptr));
}

BOOST_AUTO_TEST_CASE(without_profiling_a_trace_has_no_operators_and_no_other_nodes) {
  a.set_tracing(true);
  run();
  for (const auto& each : of(a)) BOOST_TEST((each.category == "request" || each.category == "backward"), each.category);
}

BOOST_AUTO_TEST_SUITE_END()
