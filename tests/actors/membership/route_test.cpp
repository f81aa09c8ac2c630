// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/membership/route.hpp>

#include <boost/test/unit_test.hpp>

#include "support/contains.hpp"

namespace {

using troupe::member;
using troupe::node_id;
using troupe::membership::host_to_reach;
using troupe::membership::host_to_tell;
using troupe::membership::route;
using troupe::membership::take_unreachable;
using troupe::membership::unreachable;
using troupe::test::contains;

const route far_away{"10.0.0.1", "10.0.0.1", "10.0.0.2", false};
const route by_ipv6{"fd00::1", "10.0.0.1", "fd00::2", false};
const route by_ipv6_alone{"fd00::1", "", "fd00::2", false};
const route on_this_machine{"10.0.0.1", "10.0.0.1", "127.0.0.1", true};

member member_at(const std::string& host) { return {"b", node_id{2}, host, 4001}; }

std::string hosts(const std::vector<member>& all) {
  std::string result;
  for (const auto& each : all) result += (result.empty() ? "" : " ") + each.host;
  return result;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(addresses)

BOOST_AUTO_TEST_CASE(a_node_tells_the_host_that_it_was_given) {
  for (const auto* host : {"10.0.0.7", "fd00::7", "h7", "127.0.0.1"}) {
    BOOST_TEST(host_to_tell(host, far_away) == host);
    BOOST_TEST(host_to_tell(host, on_this_machine) == host);
    BOOST_TEST(host_to_tell(host, {}) == host);
  }
}

BOOST_AUTO_TEST_CASE(a_node_that_listens_on_all_addresses_tells_the_one_of_the_connection) {
  for (const auto* everywhere : {"0.0.0.0", "::", "0:0::0"}) {
    BOOST_TEST(host_to_tell(everywhere, far_away) == "10.0.0.1");
    BOOST_TEST(host_to_tell(everywhere, on_this_machine) == "10.0.0.1");
  }
  BOOST_TEST(host_to_tell("::", by_ipv6) == "fd00::1");
}

BOOST_AUTO_TEST_CASE(a_node_that_listens_by_ipv4_alone_tells_its_ipv4_address) {
  BOOST_TEST(host_to_tell("0.0.0.0", by_ipv6) == "10.0.0.1");
  BOOST_TEST(host_to_tell("0.0.0.0", by_ipv6_alone) == "fd00::1");
}

BOOST_AUTO_TEST_CASE(a_node_that_told_a_host_is_reached_there) {
  for (const auto* host : {"10.0.0.7", "h7"}) BOOST_TEST(host_to_reach(host, far_away) == host);
  BOOST_TEST(host_to_reach("127.0.0.1", on_this_machine) == "127.0.0.1");
  BOOST_TEST(host_to_reach("127.0.0.1", {}) == "127.0.0.1");
}

BOOST_AUTO_TEST_CASE(a_node_that_told_a_wildcard_or_loopback_is_reached_at_the_other_end_of_the_connection) {
  for (const auto* host : {"0.0.0.0", "::", "127.0.0.1", "::1", "localhost"})
    BOOST_TEST(host_to_reach(host, far_away) == "10.0.0.2");
  BOOST_TEST(host_to_reach("0.0.0.0", on_this_machine) == "127.0.0.1");
}

BOOST_AUTO_TEST_CASE(a_node_of_another_machine_that_listens_on_loopback_is_told_what_to_do) {
  for (const auto* host : {"127.0.0.1", "::1", "localhost"}) {
    const auto why = unreachable(member_at(host), far_away);
    for (const auto* part : {"'b'", host, "10.0.0.2", "--host", "--advertise"}) BOOST_TEST(contains(why, part), why);
    BOOST_TEST(unreachable(member_at(host), on_this_machine) == "");
    BOOST_TEST(unreachable(member_at(host), {}) == "");
  }
  for (const auto* host : {"10.0.0.7", "h7", "0.0.0.0"}) BOOST_TEST(unreachable(member_at(host), far_away) == "");
}

BOOST_AUTO_TEST_CASE(members_at_loopback_or_wildcards_are_not_for_other_machines) {
  const std::vector<member> all{member_at("127.0.0.1"), member_at("10.0.0.7"), member_at("0.0.0.0"), member_at("h7"),
                                member_at("::1")};
  auto rest = all;
  BOOST_TEST(hosts(take_unreachable(rest, far_away)) == "127.0.0.1 0.0.0.0 ::1");
  BOOST_TEST(hosts(rest) == "10.0.0.7 h7");
  for (const auto& near : {std::optional<route>(on_this_machine), std::optional<route>()}) {
    rest = all;
    BOOST_TEST(hosts(take_unreachable(rest, near)) == "0.0.0.0");
    BOOST_TEST(hosts(rest) == "127.0.0.1 10.0.0.7 h7 ::1");
  }
}

BOOST_AUTO_TEST_SUITE_END()
