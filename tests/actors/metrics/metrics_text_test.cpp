// SPDX-License-Identifier: BSD-3-Clause
#include <boost/test/unit_test.hpp>

#include <string>

#include <troupe/actors/metrics/metrics_text.hpp>

#include "support/contains.hpp"
#include "support/metrics_rules.hpp"

using troupe::metrics::metrics_text;
using troupe::test::contains;
using troupe::test::problems_of_metrics;

namespace {

troupe::peer_status peer(const std::string& name, bool up, std::uint64_t bytes) {
  troupe::peer_status result;
  result.who = {name, {bytes}, "127.0.0.1", 4001};
  result.up = up;
  result.gone = !up;
  result.bytes_sent = bytes;
  result.plain_bytes_sent = 2 * bytes;
  return result;
}

void check_rules(const std::string& page) {
  for (const auto& problem : problems_of_metrics(page)) BOOST_ERROR(problem);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(text_of_metrics)

BOOST_AUTO_TEST_CASE(the_status_of_a_node_follows_the_rules_of_prometheus) {  // PT-1
  troupe::node_status status;
  status.self.name = "stage1";
  status.version = "0.1.0";
  status.uptime_ns = 1'500'000'000;
  status.calls_run = 7;
  status.resident_bytes = 12345678;
  check_rules(metrics_text(status));
  status.peers = {peer("driver", true, 100), peer("a\"b\\c\nx", true, 1)};
  const auto page = metrics_text(status);
  check_rules(page);
  for (const auto* line :
       {"\ntroupe_build_info{node=\"stage1\",version=\"0.1.0\"} 1\n", "\ntroupe_uptime_seconds 1.500\n",
        "\n# TYPE troupe_calls_run_total counter\ntroupe_calls_run_total 7\n", "\ntroupe_resident_memory_bytes 12345678\n",
        "\ntroupe_peers{state=\"up\"} 2\n", "\ntroupe_peer_sent_bytes_total{peer=\"driver\"} 100\n",
        "\ntroupe_peer_sent_bytes_before_compression_total{peer=\"driver\"} 200\n",
        "\ntroupe_peer_received_bytes_before_compression_total{peer=\"driver\"} 0\n", "{peer=\"a\\\"b\\\\c\\nx\"} 1\n"})
    BOOST_TEST(contains(page, line), "expected '" << line << "' in " << page);
}

BOOST_AUTO_TEST_CASE(members_that_are_not_reached_count_apart_from_unreachable_peers) {
  troupe::node_status status;
  status.peers = {peer("b", false, 0), peer("c", false, 0)};
  for (auto& each : status.peers) each.gone = false;
  status.peers[1].transport = troupe::not_reached;
  const auto page = metrics_text(status);
  check_rules(page);
  for (const auto* line : {"troupe_peers{state=\"unreachable\"} 1\n", "troupe_peers{state=\"not_reached\"} 1\n"})
    BOOST_TEST(contains(page, line), page);
}

BOOST_AUTO_TEST_CASE(a_peer_that_was_restarted_is_one_peer_whose_counters_do_not_fall) {  // PT-1
  troupe::node_status status;
  status.peers = {peer("b", true, 5), peer("b", false, 100)};
  const auto page = metrics_text(status);
  check_rules(page);
  BOOST_TEST(contains(page, "troupe_peer_sent_bytes_total{peer=\"b\"} 105\n"), page);
  BOOST_TEST(contains(page, "troupe_peer_up{peer=\"b\"} 1\n"), page);
  BOOST_TEST(contains(page, "troupe_peers{state=\"up\"} 1\n"), page);
}

BOOST_AUTO_TEST_CASE(the_check_of_the_rules_finds_what_breaks_them) {
  const std::string good = "# HELP a_total Text.\n# TYPE a_total counter\na_total{x=\"1\"} 1\n";
  BOOST_TEST(problems_of_metrics(good).empty());
  for (const std::string bad :
       {"a_total{x=\"1\"} 2\n", "b 1\n", "a_total{x=\"2\",} 2\n", "a_total{x=2} 2\n", "a_total x\n", "\n",
        "# TYPE b gauge\nb 1\n", "# HELP b T.\n# TYPE b counter\n", "# HELP b_ms T.\n# TYPE b_ms gauge\n", "x"})
    BOOST_TEST(!problems_of_metrics(good + bad).empty(), bad);
}

BOOST_AUTO_TEST_SUITE_END()
