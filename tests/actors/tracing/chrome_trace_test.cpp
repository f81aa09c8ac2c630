// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/tracing/chrome_trace.hpp>

#include <limits>
#include <map>

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

namespace {

using nlohmann::json;
using troupe::tracing::chrome_trace;
using troupe::tracing::node_trace;

// The trace as parsed JSON. If the text is invalid, parse() throws and the test fails.
json drawn(const std::vector<node_trace>& nodes) { return json::parse(chrome_trace(nodes)); }

std::vector<json> events(const json& trace, const std::string& phase) {
  std::vector<json> result;
  for (const auto& event : trace.at("traceEvents"))
    if (event.at("ph") == phase) result.push_back(event);
  return result;
}

std::string name_of(const json& trace, const std::string& what, int process, int thread) {
  for (const auto& event : events(trace, "M"))
    if (event.at("name") == what && event.at("pid") == process && event.at("tid") == thread) return event.at("args").at("name");
  return {};
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_trace_without_nodes_or_spans_is_valid) {
  BOOST_TEST(drawn({}).at("traceEvents").empty());
  const auto trace = drawn({{"driver", 0, {}}});
  BOOST_TEST(events(trace, "X").empty());
  BOOST_TEST(name_of(trace, "process_name", 1, 0) == "driver");
}

BOOST_AUTO_TEST_CASE(each_node_is_a_process_row_in_the_given_order) {
  const auto trace =
    drawn({{"driver", 0, {{"loss", "call", 5000, 9000, "calls"}}},
           {"stage1", 0, {{"forward", "call", 6000, 7000, "calls"}, {"step", "pass", 1000, 2500, "backward"}}}});
  BOOST_TEST(name_of(trace, "process_name", 1, 0) == "driver");
  BOOST_TEST(name_of(trace, "process_name", 2, 0) == "stage1");
  BOOST_TEST(name_of(trace, "thread_name", 2, 1) == "backward");
  BOOST_TEST(name_of(trace, "thread_name", 2, 2) == "calls");
  const auto spans = events(trace, "X");
  BOOST_TEST_REQUIRE(spans.size() == 3);
  BOOST_TEST(spans[0].at("name") == "step");
  BOOST_TEST(spans[0].at("cat") == "pass");
  BOOST_TEST(spans[0].at("pid") == 2);
  BOOST_TEST(spans[0].at("tid") == 1);
  BOOST_TEST(spans[0].at("ts").get<double>() == 0.0);
  BOOST_TEST(spans[0].at("dur").get<double>() == 1.5);
  BOOST_TEST(spans[1].at("name") == "loss");
  BOOST_TEST(spans[1].at("ts").get<double>() == 4.0);
  BOOST_TEST(spans[2].at("name") == "forward");
  BOOST_TEST(trace.at("otherData").at("origin_ns") == 1000);
}

BOOST_AUTO_TEST_CASE(an_arrow_leads_from_a_call_to_its_callee_though_the_clocks_are_not_exact) {
  const auto trace = drawn({{"driver",
                             0,
                             {{"forward", "request", 1000, 9000, "request", 7},
                              {"lost", "request", 2000, 9000, "request", 8},
                              {"loss", "request", 3000, 9000, "request", 9}}},
                            {"stage1",
                             0,
                             {{"forward", "call", 4000, 5000, "call", 7},
                              {"loss", "call", 2500, 5000, "call", 9},
                              {"other", "call", 4000, 5000, "call", 10},
                              {"none", "call", 4000, 5000, "call", 0}}}});
  std::map<std::string, std::map<int, std::pair<int, double>>> ends;  // of each flow: node and time
  for (const auto& phase : {"s", "f"})
    for (const auto& event : events(trace, phase)) ends[phase][event.at("id")] = {event.at("pid"), event.at("ts")};
  BOOST_TEST_REQUIRE(ends["s"].size() == 2U);
  BOOST_TEST_REQUIRE(ends["f"].size() == 2U);
  BOOST_TEST((ends["s"][7] == std::pair(1, 0.0)));
  BOOST_TEST((ends["f"][7] == std::pair(2, 3.0)));
  BOOST_TEST((ends["s"][9] == std::pair(1, 2.0)));
  BOOST_TEST((ends["f"][9] == std::pair(2, 1.5)));
}

BOOST_AUTO_TEST_CASE(clocks_that_differ_are_drawn_on_one) {
  const std::int64_t ahead = 3'600'000'000'000;
  const auto trace = drawn({{"driver", 0, {{"call", "call", 10'000, 90'000, "calls"}}},
                            {"stage1", ahead, {{"run", "call", ahead + 20'001, ahead + 80'000, "calls"}}},
                            {"stage2", -ahead, {{"run", "call", 30'000 - ahead, 70'000 - ahead, "calls"}}}});
  const auto spans = events(trace, "X");
  BOOST_TEST_REQUIRE(spans.size() == 3);
  BOOST_TEST(spans[0].at("pid") == 1);
  BOOST_TEST(spans[1].at("pid") == 2);
  BOOST_TEST(spans[1].at("ts").get<double>() == 10.001);
  BOOST_TEST(spans[2].at("pid") == 3);
  BOOST_TEST(spans[2].at("ts").get<double>() == 20.0);
  BOOST_TEST(spans[2].at("dur").get<double>() == 40.0);
}

BOOST_AUTO_TEST_CASE(spans_of_one_row_never_overlap_but_by_lying_within_one_another) {
  std::vector<troupe::tracing::trace_span> spans;
  std::uint64_t seed = 1;
  for (int i = 0; i < 500; ++i) {
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    const auto begin = static_cast<std::int64_t>(seed >> 33) % 100'000;
    const auto length = static_cast<std::int64_t>(seed >> 13) % 2'000;
    spans.push_back({"s" + std::to_string(i), "test", begin, begin + length, i % 3 == 0 ? "calls" : "backward"});
  }
  const auto trace = drawn({{"stage1", 0, spans}});
  std::map<int, std::vector<std::pair<double, double>>> rows;
  for (const auto& event : events(trace, "X"))
    rows[event.at("tid")].emplace_back(event.at("ts"), event.at("ts").get<double>() + event.at("dur").get<double>());
  BOOST_TEST(rows.size() > 2);
  std::size_t collisions = 0;
  for (const auto& [row, members] : rows)
    for (std::size_t i = 0; i < members.size(); ++i)
      for (std::size_t j = i + 1; j < members.size(); ++j) {
        const auto [a, b] = std::minmax(members[i], members[j]);
        const bool apart = a.second <= b.first + 1e-6;
        const bool within = b.second <= a.second + 1e-6 || (a.first == b.first && a.second <= b.second);
        collisions += !apart && !within;
      }
  BOOST_TEST(collisions == 0);
}

BOOST_AUTO_TEST_CASE(rows_of_overlapping_spans_are_numbered_and_nested_ones_share_one) {
  const auto trace = drawn({{"stage1",
                             0,
                             {{"outer", "call", 0, 10'000, "calls"},
                              {"inner", "call", 2'000, 3'000, "calls"},
                              {"crossing", "call", 5'000, 15'000, "calls"},
                              {"after", "call", 10'000, 20'000, "calls"}}}});
  std::map<std::string, int> row;
  for (const auto& event : events(trace, "X")) row[event.at("name")] = event.at("tid");
  BOOST_TEST(row["outer"] == 1);
  BOOST_TEST(row["inner"] == 1);
  BOOST_TEST(row["crossing"] == 2);
  BOOST_TEST(row["after"] == 1);
  BOOST_TEST(name_of(trace, "thread_name", 1, 1) == "calls");
  BOOST_TEST(name_of(trace, "thread_name", 1, 2) == "calls 2");
}

BOOST_AUTO_TEST_CASE(times_are_sorted) {
  const auto trace = drawn({{"a", 0, {{"3", "", 3, 4, ""}, {"1", "", 1, 9, ""}}}, {"b", 0, {{"2", "", 2, 3, ""}}}});
  double last = -1;
  for (const auto& event : events(trace, "X")) {
    BOOST_TEST(event.at("ts").get<double>() > last);
    last = event.at("ts");
  }
}

BOOST_AUTO_TEST_CASE(any_bytes_in_a_name_make_valid_json) {
  std::string every;
  for (int c = 0; c < 256; ++c) every += static_cast<char>(c);
  const std::string accents = "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x8e\xad";
  const auto trace =
    drawn({{"node \"x\" \\ \n", 0, {{every, every, 0, 1, every}, {accents, "\xed\xa0\x80\xf5\xc0", 2, 3, "\xe2\x82"}}}});
  BOOST_TEST(name_of(trace, "process_name", 1, 0) == "node \"x\" \\ \n");
  const auto spans = events(trace, "X");
  BOOST_TEST(spans[0].at("name").get<std::string>().substr(0, 128) == every.substr(0, 128));
  BOOST_TEST(spans[1].at("name") == accents);
}

BOOST_AUTO_TEST_CASE(characters_at_the_edges_of_unicode_stay_and_what_lies_beyond_is_replaced) {
  for (const std::string text : {"\x7f", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xe0\xb8\x81", "\xed\x9f\xbf", "\xee\x80\x80",
                                 "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf0\xbf\xbf\xbf", "\xf4\x8f\xbf\xbf"}) {
    const auto trace = drawn({{"a", 0, {{text, "", 0, 1, ""}}}});
    BOOST_TEST(events(trace, "X").front().at("name") == text);
  }
  for (const std::string text :
       {"\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80"}) {
    const auto trace = drawn({{"a", 0, {{text, "", 0, 1, ""}}}});
    BOOST_TEST(events(trace, "X").front().at("name").get<std::string>().starts_with("\ufffd"));
  }
}

BOOST_AUTO_TEST_CASE(impossible_times_make_valid_json) {
  constexpr auto lowest = std::numeric_limits<std::int64_t>::min();
  constexpr auto highest = std::numeric_limits<std::int64_t>::max();
  const auto trace = drawn(
    {{"a", highest, {{"x", "", lowest, highest, ""}, {"y", "", highest, lowest, ""}}}, {"b", lowest, {{"z", "", 0, 1, ""}}}});
  for (const auto& event : events(trace, "X")) {
    BOOST_TEST(event.at("ts").get<double>() >= 0);
    BOOST_TEST(event.at("dur").get<double>() >= 0);
  }
}
