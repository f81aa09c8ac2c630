// SPDX-License-Identifier: BSD-3-Clause
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <string>

#include <nlohmann/json.hpp>

#include "apps/cluster_view.hpp"
#include "support/contains.hpp"

using troupe::cluster_member;
using troupe::cluster_status;
using troupe::apps::cluster_view;
using troupe::test::contains;

namespace {

troupe::member who(const std::string& name, std::uint64_t id, std::uint16_t port) { return {name, {id}, "127.0.0.1", port}; }

cluster_member up(const troupe::member& peer, std::uint64_t calls_run = 0) {
  cluster_member result;
  result.seen.who = peer;
  result.seen.up = true;
  result.seen.transport = "TCP";
  result.status.emplace();
  result.status->self = peer;
  result.status->version = "0.1.0";
  result.status->members_up = 23;
  result.status->uptime_ns = static_cast<std::int64_t>(1'000'000'000 + calls_run * 1'000'000'000);
  result.status->calls_run = calls_run * 7;
  return result;
}

cluster_member down(const troupe::member& peer, bool gone, std::int64_t since_ns, const std::string& reason) {
  cluster_member result;
  result.seen.who = peer;
  result.seen.gone = gone;
  result.seen.since_ns = since_ns;
  result.problem = reason;
  return result;
}

cluster_status cluster(std::vector<cluster_member> others) {
  cluster_status result;
  result.asked.self = who("asked", 1, 4000);
  result.others = std::move(others);
  return result;
}

std::vector<std::string> listed(const cluster_view& view) {
  std::vector<std::string> result;
  for (const auto& each : view.rows()) result.push_back(each.who.name + " " + each.state);
  return result;
}

using list = std::vector<std::string>;

}  // namespace

BOOST_AUTO_TEST_SUITE(view_of_a_cluster)

BOOST_AUTO_TEST_CASE(the_asked_node_is_first_and_the_others_are_sorted_by_state_and_name) {
  const cluster_view view(cluster(
    {up(who("z", 2, 1)), down(who("a", 3, 2), true, 5, "left"), up(who("b", 4, 3)), down(who("c", 5, 4), false, 5, "frozen")}));
  BOOST_TEST(listed(view) == (list{"asked up", "b up", "z up", "c unreachable", "a gone"}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_node_that_was_restarted_is_listed_once) {  // CV-1
  BOOST_TEST(
    listed(cluster_view(cluster({up(who("b", 2, 1)), down(who("b", 3, 9), true, 5, "")}))) == (list{"asked up", "b up"}),
    boost::test_tools::per_element());
  BOOST_TEST(listed(cluster_view(cluster({down(who("b", 2, 1), false, 5, ""), down(who("b", 3, 1), true, 9, "")}))) ==
               (list{"asked up", "b unreachable"}),
             boost::test_tools::per_element());
  BOOST_TEST(
    listed(cluster_view(cluster({up(who("new", 2, 1)), down(who("old", 3, 1), true, 5, "")}))) == (list{"asked up", "new up"}),
    boost::test_tools::per_element());
  const cluster_view twice(cluster({down(who("b", 2, 1), true, 9, "first"), down(who("b", 3, 1), true, 5, "second")}));
  BOOST_TEST(listed(twice) == (list{"asked up", "b gone"}), boost::test_tools::per_element());
  BOOST_TEST(twice.rows().back().problem == "second");
  BOOST_TEST(listed(cluster_view(cluster({down(who("asked", 2, 4000), true, 5, "")}))) == (list{"asked up"}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_node_without_an_answer_is_listed_with_the_reason) {  // CV-2
  auto mute = up(who("mute", 2, 1));
  mute.status.reset();
  mute.problem = "node 'mute' did not answer within 2 s";
  const cluster_view view(cluster({mute, down(who("off", 3, 2), false, 61'000'000'000, "connection lost")}));
  const auto table = view.table();
  BOOST_TEST(contains(table, "cluster as asked sees it: 2 up, 1 unreachable, 0 gone\n"), table);
  BOOST_TEST(contains(table, "\nmute: node 'mute' did not answer within 2 s\n"), table);
  BOOST_TEST(contains(table, "\noff: connection lost\n"), table);
  BOOST_TEST(contains(table, "unreachable  -          1:01"), table);
  const auto nodes = view.json()["nodes"];
  BOOST_TEST(nodes[1]["problem"] == "node 'mute' did not answer within 2 s");
  BOOST_TEST(!nodes[1].contains("version"));
  BOOST_TEST(cluster_view(cluster({up(who("b", 2, 1))})).json()["nodes"][1]["members_up"] == 23);
  BOOST_TEST(nodes[2]["for_s"] == 61.0);
}

BOOST_AUTO_TEST_CASE(members_that_a_node_does_not_reach_are_named_with_the_reason) {  // CV-2
  auto b = up(who("b", 2, 1));
  auto far = down(who("far", 3, 2), false, 5, "no answer from h3");
  far.seen.transport = troupe::not_reached;
  far.seen.reason = "no answer from h3";
  b.status->peers = {far.seen};
  auto all = cluster({b, far});
  all.asked.peers = {far.seen};
  const cluster_view view(std::move(all));
  BOOST_TEST(listed(view) == (list{"asked up", "b up", "far not reached from here"}), boost::test_tools::per_element());
  const auto table = view.table();
  BOOST_TEST(contains(table, ": 2 up, 0 unreachable, 1 not reached from here, 0 gone\n"), table);
  BOOST_TEST(contains(table, "\nasked does not reach far: no answer from h3\nb does not reach far: no answer from h3\n"),
             table);
  BOOST_TEST(view.json()["nodes"][1]["does_not_reach"][0]["name"] == "far");
}

BOOST_AUTO_TEST_CASE(rates_need_two_answers_of_the_same_process) {
  const auto before = cluster({up(who("b", 2, 1), 1), up(who("c", 3, 2), 1)});
  const cluster_view view(cluster({up(who("b", 2, 1), 3), up(who("c", 9, 2), 3)}), &before);
  BOOST_TEST_REQUIRE(view.rows()[1].rates.has_value());
  BOOST_TEST(view.rows()[1].rates->calls_run == 7);
  BOOST_TEST(!view.rows()[2].rates.has_value());
  BOOST_TEST(!cluster_view(before).rows()[1].rates.has_value());
  BOOST_TEST(view.json()["nodes"][1]["rates"]["calls_run"] == 7.0);
}

BOOST_AUTO_TEST_SUITE_END()
