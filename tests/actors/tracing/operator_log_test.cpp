// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/tracing/operator_log.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/record_function.h>

using troupe::tracing::operator_log;
using troupe::tracing::span_collector;

BOOST_AUTO_TEST_SUITE(logs_of_operators)

namespace {

using span_list = std::vector<troupe::tracing::trace_span>;

bool has(const span_list& spans, const std::string& name) {
  return std::any_of(spans.begin(), spans.end(), [&](const auto& each) { return each.name == name; });
}

}  // namespace

BOOST_AUTO_TEST_CASE(collect_what_their_thread_runs_while_they_live) {
  const auto spans = std::make_shared<span_collector>();
  const auto one = at::ones({1});
  {
    const operator_log log(spans);
    BOOST_TEST((operator_log::current() == spans));
    static_cast<void>(one.sin());
    std::thread([&] { static_cast<void>(one.cos()); }).join();
  }
  static_cast<void>(one.exp());
  BOOST_TEST(!operator_log::current());
  const auto all = spans->take();
  BOOST_TEST(has(all, "aten::sin"));
  BOOST_TEST(!has(all, "aten::cos"));
  BOOST_TEST(!has(all, "aten::exp"));
  BOOST_TEST(spans->take().empty());
}

BOOST_AUTO_TEST_CASE(without_a_collector_observe_nothing) {  // OL-1
  const operator_log log(nullptr);
  BOOST_TEST(!at::hasThreadLocalCallbacks());
  BOOST_TEST(!operator_log::current());
}

BOOST_AUTO_TEST_CASE(without_a_collector_hide_the_outer_one) {  // OL-1
  const auto spans = std::make_shared<span_collector>();
  const auto one = at::ones({1});
  const operator_log outer(spans);
  {
    const operator_log hiding(nullptr);
    BOOST_TEST(!operator_log::current());
    static_cast<void>(one.cos());
  }
  BOOST_TEST((operator_log::current() == spans));
  static_cast<void>(one.exp());
  const auto all = spans->take();
  BOOST_TEST(!has(all, "aten::cos"));
  BOOST_TEST(has(all, "aten::exp"));
}

BOOST_AUTO_TEST_CASE(within_each_other_collect_for_the_innermost_one) {
  const auto outer_spans = std::make_shared<span_collector>();
  const auto inner_spans = std::make_shared<span_collector>();
  const auto one = at::ones({1});
  const operator_log outer(outer_spans);
  {
    const operator_log inner(inner_spans);
    static_cast<void>(one.cos());
  }
  const auto inside = inner_spans->take();
  BOOST_TEST(std::count_if(inside.begin(), inside.end(), [](const auto& each) { return each.name == "aten::cos"; }) == 1);
  BOOST_TEST(outer_spans->take().empty());
}

BOOST_AUTO_TEST_CASE(keep_a_limited_number_of_spans) {
  span_collector spans;
  for (std::size_t i = 0; i < span_collector::most + 5; ++i) spans.add({});
  BOOST_TEST(spans.take().size() == span_collector::most);
}

BOOST_AUTO_TEST_CASE(spans_of_another_clock_come_to_lie_in_the_middle_of_the_time_they_were_waited_for) {
  span_list all{
    {"call", "call", 1000, 1600, {}}, {"operator", "operator", 1100, 1200, {}}, {"too long", "operator", 0, 9000, {}}};
  troupe::tracing::fit_within(all, -500, 500);
  BOOST_TEST(all[0].begin_ns == -300);
  BOOST_TEST(all[0].end_ns == 300);
  BOOST_TEST(all[1].begin_ns == -200);
  BOOST_TEST(all[1].end_ns == -100);
  BOOST_TEST(all[2].begin_ns == -500);
  BOOST_TEST(all[2].end_ns == 500);
  constexpr auto huge = std::numeric_limits<std::int64_t>::max();
  span_list hostile{{"call", "call", -huge, huge, {}}, {"operator", "operator", huge, -huge, {}}};
  troupe::tracing::fit_within(hostile, 10, 20);
  for (const auto& each : hostile) BOOST_TEST((each.begin_ns >= 10 && each.end_ns <= 20));
}

BOOST_AUTO_TEST_SUITE_END()
