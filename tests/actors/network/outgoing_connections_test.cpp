// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/network/silent_connections.hpp>

#include <sys/socket.h>

#include <boost/test/unit_test.hpp>

#include "actors/network/loopback_connection.hpp"

BOOST_AUTO_TEST_SUITE(outgoing_calls)

namespace {

using troupe::network::outgoing_connections;
using troupe::test::loopback_connection;

bool is_over(int socket) {
  char any = 0;
  return ::recv(socket, &any, 1, MSG_DONTWAIT) == 0;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_stored_connection_is_taken_once_and_for_its_address_alone) {
  outgoing_connections all;
  loopback_connection over;
  const int socket = over.caller.get();
  const auto stored = all.store("here", 1, {std::move(over.caller), nullptr});
  BOOST_TEST(!all.take("here", 2).has_value());
  BOOST_TEST(!all.take("there", 1).has_value());
  const auto taken = all.take("here", 1);
  BOOST_REQUIRE(taken.has_value());
  BOOST_TEST(taken->socket.get() == socket);
  BOOST_TEST(!all.take("here", 1).has_value());
}

BOOST_AUTO_TEST_CASE(a_connection_that_is_stored_no_more_is_closed) {
  outgoing_connections all;
  loopback_connection over;
  all.store("here", 1, {std::move(over.caller), nullptr}).reset();
  BOOST_TEST(!all.take("here", 1).has_value());
  BOOST_TEST(is_over(over.called.get()));
}

BOOST_AUTO_TEST_CASE(calls_that_are_given_up_end_unless_something_has_come) {
  outgoing_connections all;
  const loopback_connection one;
  const loopback_connection other;
  const loopback_connection answered;
  const auto waits = all.expect_first("here", 1, one.caller.get());
  const auto elsewhere = all.expect_first("here", 2, other.caller.get());
  all.expect_first("here", 1, answered.caller.get()).reset();
  all.give_up("here", 1);
  BOOST_TEST(is_over(one.called.get()));
  BOOST_TEST(!is_over(other.called.get()));
  BOOST_TEST(!is_over(answered.called.get()));
}

BOOST_AUTO_TEST_SUITE_END()
