// SPDX-License-Identifier: BSD-3-Clause
#include <boost/test/unit_test.hpp>

#include "apps/cluster_view.hpp"

using troupe::apps::bytes_text;
using troupe::apps::status_rates;

BOOST_AUTO_TEST_CASE(rates_are_what_was_done_in_a_second) {
  troupe::node_status before;
  before.self.id = {1};
  before.uptime_ns = 1'000'000'000;
  before.calls_run = 10;
  before.peers.resize(2);
  before.peers[0].bytes_sent = 100;
  auto after = before;
  after.uptime_ns = 3'000'000'000;
  after.calls_run = 30;
  after.functions_run = 5;
  after.peers[0].bytes_sent = 300;
  after.peers[1].bytes_received = 6;
  after.peers[1].bytes_read = 4;
  const auto rates = status_rates::between(before, after);
  BOOST_TEST_REQUIRE(rates.has_value());
  BOOST_TEST(rates->calls_run == 10);
  BOOST_TEST(rates->functions_run == 2.5);
  BOOST_TEST(rates->bytes_sent == 100);
  BOOST_TEST(rates->bytes_received == 5);
}

BOOST_AUTO_TEST_CASE(a_node_that_was_restarted_has_no_rates_and_no_rate_is_negative) {  // RA-1
  troupe::node_status before;
  before.self.id = {1};
  before.uptime_ns = 1;
  before.peers.resize(1);
  before.peers[0].bytes_sent = 100;
  auto after = before;
  BOOST_TEST(!status_rates::between(before, after).has_value());
  after.uptime_ns = 2;
  after.peers.clear();  // forgotten
  BOOST_TEST(status_rates::between(before, after)->bytes_sent == 0);
  after.self.id = {2};
  BOOST_TEST(!status_rates::between(before, after).has_value());
}

BOOST_AUTO_TEST_CASE(bytes_are_shown_in_the_largest_unit) {
  BOOST_TEST(bytes_text(0) == "0 B");
  BOOST_TEST(bytes_text(999) == "999 B");
  BOOST_TEST(bytes_text(999.7) == "1.0 kB");
  BOOST_TEST(bytes_text(1'234'567) == "1.2 MB");
  BOOST_TEST(bytes_text(123'456'789) == "123 MB");
  BOOST_TEST(bytes_text(2e18) == "2000 PB");
}
