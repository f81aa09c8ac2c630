// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/support/host_lookup.hpp>

#include <boost/test/unit_test.hpp>

#include <arpa/inet.h>

using troupe::support::look_up;

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

BOOST_AUTO_TEST_SUITE_END()
