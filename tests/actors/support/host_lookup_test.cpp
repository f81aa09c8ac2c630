// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/support/host_lookup.hpp>

#include <boost/test/unit_test.hpp>

#include <arpa/inet.h>

using troupe::support::look_up;
using troupe::support::only_loopback;
using troupe::support::read_address;

BOOST_AUTO_TEST_SUITE(look_up_of_hosts)

BOOST_AUTO_TEST_CASE(gives_the_addresses_of_a_host_with_the_port) {
  const auto found = look_up("127.0.0.1", 4001);
  BOOST_TEST(!found.failed());
  BOOST_REQUIRE(found.addresses);
  BOOST_REQUIRE(found.addresses->ai_family == AF_INET);
  const auto* address = reinterpret_cast<const sockaddr_in*>(found.addresses->ai_addr);
  BOOST_TEST(ntohl(address->sin_addr.s_addr) == INADDR_LOOPBACK);
  BOOST_TEST(ntohs(address->sin_port) == 4001);
}

BOOST_AUTO_TEST_CASE(says_which_host_has_no_address) {
  const auto found = look_up("no such host", 4001);
  BOOST_TEST(found.failed());
  BOOST_TEST(!found.addresses);
  BOOST_TEST(found.problem.starts_with("the host name 'no such host' has no address ("), found.problem);
}

BOOST_AUTO_TEST_CASE(tells_an_address_from_a_name) {
  for (const auto* host : {"127.0.0.1", "::1", "192.0.2.7"}) BOOST_TEST(read_address(host, 4001).has_value());
  for (const auto* host : {"localhost", "no such host", "1.2.3.4.5", ""}) BOOST_TEST(!read_address(host, 4001).has_value());
}

// tests/hosts/addresses_test.cpp has a name of a host that stands for loopback.
BOOST_AUTO_TEST_CASE(knows_the_hosts_that_are_loopback_alone) {
  for (const auto* host : {"127.0.0.1", "127.0.1.1", "::1"}) BOOST_TEST(only_loopback(host) == host);
  for (const auto* host : {"10.0.0.1", "0.0.0.0", "::", "fd00::1", "no such host"}) BOOST_TEST(only_loopback(host) == "");
}

BOOST_AUTO_TEST_SUITE_END()
