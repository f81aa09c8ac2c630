// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/support/machine_address.hpp>

#include <boost/test/unit_test.hpp>

#include <arpa/inet.h>
#include <netinet/in.h>

#include <troupe/actors/settings.hpp>

#include "actors/network/loopback_connection.hpp"

namespace {

using troupe::support::address_for_others;
using troupe::support::is_of_this_machine;
using troupe::support::network_of_other_end;
using troupe::support::numeric_address;
using troupe::test::loopback_connection;

sockaddr_storage address(int family, const char* text) {
  sockaddr_storage result{};
  result.ss_family = static_cast<sa_family_t>(family);
  void* to = family == AF_INET ? static_cast<void*>(&reinterpret_cast<sockaddr_in&>(result).sin_addr)
                               : static_cast<void*>(&reinterpret_cast<sockaddr_in6&>(result).sin6_addr);
  BOOST_REQUIRE(inet_pton(family, text, to) == 1);
  return result;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(machine_address)

BOOST_AUTO_TEST_CASE(addresses_are_written_as_numbers_and_ipv4_within_ipv6_as_ipv4) {
  BOOST_TEST(numeric_address(address(AF_INET, "10.0.0.1")) == "10.0.0.1");
  BOOST_TEST(numeric_address(address(AF_INET6, "fd00:0::1")) == "fd00::1");
  BOOST_TEST(numeric_address(address(AF_INET6, "::ffff:10.0.0.1")) == "10.0.0.1");
  sockaddr_storage other{};
  other.ss_family = AF_UNIX;
  BOOST_TEST(numeric_address(other) == "");
}

BOOST_AUTO_TEST_CASE(the_network_of_the_other_end_is_its_address_or_the_first_half_of_it) {
  BOOST_TEST(network_of_other_end(loopback_connection(AF_INET, "127.0.0.2").called.get()) == "127.0.0.2");
  BOOST_TEST(network_of_other_end(loopback_connection(AF_INET6).called.get()) == "::");  // of ::1
  BOOST_TEST(network_of_other_end(-1) == "");
}

BOOST_AUTO_TEST_CASE(loopback_and_the_interfaces_are_of_this_machine_and_others_are_not) {
  BOOST_TEST(is_of_this_machine("127.0.0.1"));
  BOOST_TEST(is_of_this_machine("127.1.2.3"));
  BOOST_TEST(!is_of_this_machine("192.0.2.1"));
  BOOST_TEST(!is_of_this_machine("2001:db8::1"));
  BOOST_TEST(!is_of_this_machine(""));
}

// tests/hosts/addresses_test.cpp has machines with and without networks.
BOOST_AUTO_TEST_CASE(the_address_for_others_is_of_this_machine_and_not_loopback) {
  for (int family : {AF_INET, AF_INET6})
    if (const auto found = address_for_others(family); !found.empty()) {
      BOOST_TEST(is_of_this_machine(found), found);
      BOOST_TEST(!troupe::is_loopback(found), found);
    }
}

BOOST_AUTO_TEST_SUITE_END()
