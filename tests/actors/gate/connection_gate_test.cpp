// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/gate/connection_gate.hpp>

#include <unistd.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <boost/test/unit_test.hpp>

#include <troupe/messages/errors.hpp>
#include <troupe/troupe.hpp>

#include "actors/loopback_nodes.hpp"
#include "actors/network/loopback_connection.hpp"
#include "actors/temporary_folder.hpp"
#include "support/as_user.hpp"
#include "support/contains.hpp"

BOOST_AUTO_TEST_SUITE(connection_gates)

namespace {

using troupe::gate::connection_gate;
using troupe::support::owned_descriptor;
using troupe::test::as_user;
using troupe::test::contains;
using end_of = troupe::gate::end;

const connection_gate own_user(connection_gate::rule::same_user);
const connection_gate open(connection_gate::rule::anyone);

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in result{};
  result.sin_family = AF_INET;
  result.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  result.sin_port = htons(port);
  return result;
}

owned_descriptor listening(std::uint16_t& port) {
  owned_descriptor result(::socket(AF_INET, SOCK_STREAM, 0));
  auto at = loopback(0);
  socklen_t size = sizeof at;
  BOOST_REQUIRE(::bind(result.get(), reinterpret_cast<sockaddr*>(&at), size) == 0);
  BOOST_REQUIRE(::listen(result.get(), 4) == 0);
  BOOST_REQUIRE(::getsockname(result.get(), reinterpret_cast<sockaddr*>(&at), &size) == 0);
  port = ntohs(at.sin_port);
  return result;
}

owned_descriptor connected(std::uint16_t port) {
  owned_descriptor result(::socket(AF_INET, SOCK_STREAM, 0));
  const auto to = loopback(port);
  BOOST_REQUIRE(::connect(result.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0);
  return result;
}

owned_descriptor accepted(const owned_descriptor& from) { return owned_descriptor(::accept(from.get(), nullptr, nullptr)); }

const auto needs_root = boost::unit_test::precondition(troupe::test::can_be_another_user);
const auto other_users = boost::unit_test::label("other_users");

}  // namespace

BOOST_AUTO_TEST_CASE(ends_of_one_user_are_let_in) {  // KG-1
  for (int family : {AF_INET, AF_INET6}) {
    const troupe::test::loopback_connection both(family);
    BOOST_TEST(!own_user.check(both.caller.get(), end_of::calling));
    BOOST_TEST(!own_user.check(both.called.get(), end_of::called));
  }
}

BOOST_AUTO_TEST_CASE(a_program_that_has_not_accepted_yet_is_known_by_the_socket_that_listens) {  // KG-1, KG-2
  std::uint16_t port = 0;
  const auto here = listening(port);
  const auto caller = connected(port);
  BOOST_TEST(!own_user.check(caller.get(), end_of::calling));
}

BOOST_AUTO_TEST_CASE(a_caller_of_another_user_is_refused, *other_users* needs_root) {  // KG-1
  std::uint16_t port = 0;
  const auto here = listening(port);
  std::optional<owned_descriptor> caller;
  {
    const as_user other;
    caller = connected(port);
  }
  const auto called = accepted(here);
  const auto refused = own_user.check(called.get(), end_of::called);
  BOOST_REQUIRE(refused.has_value());
  BOOST_TEST(!refused->has_ended);
  BOOST_TEST(contains(
    refused->why, "runs as user " + std::to_string(as_user::somebody) + ", this node as user " + std::to_string(::geteuid())));
  BOOST_TEST(!open.check(called.get(), end_of::called));
}

BOOST_AUTO_TEST_CASE(a_listener_of_another_user_is_refused_before_and_after_it_accepts, *other_users* needs_root) {  // KG-1
  std::uint16_t port = 0;
  std::optional<owned_descriptor> there;
  {
    const as_user other;
    there = listening(port);
  }
  const auto caller = connected(port);
  BOOST_TEST(own_user.check(caller.get(), end_of::calling).has_value());
  std::optional<owned_descriptor> called;
  {
    const as_user other;
    called = accepted(*there);
  }
  const auto refused = own_user.check(caller.get(), end_of::calling);
  BOOST_REQUIRE(refused.has_value());
  BOOST_TEST(
    contains(refused->why, "127.0.0.1:" + std::to_string(port) + " runs as user " + std::to_string(as_user::somebody)));
}

BOOST_AUTO_TEST_CASE(a_caller_that_has_gone_is_refused) {  // KG-1: the kernel gives user 0 for its socket
  std::uint16_t port = 0;
  const auto here = listening(port);
  auto caller = connected(port);
  const auto called = accepted(here);
  BOOST_REQUIRE(::send(caller.get(), "early", 5, 0) == 5);
  ::shutdown(caller.get(), SHUT_WR);
  auto refused = own_user.check(called.get(), end_of::called);
  BOOST_REQUIRE(refused.has_value());
  BOOST_TEST(refused->has_ended);
  caller = owned_descriptor();
  refused = own_user.check(called.get(), end_of::called);
  BOOST_REQUIRE(refused.has_value());
  BOOST_TEST(refused->has_ended);
}

BOOST_AUTO_TEST_CASE(a_program_of_another_user_gets_no_byte_of_a_node, *other_users* needs_root) {  // SM-3
  troupe::test::temporary_folder folder;
  auto with = troupe::test::loopback_settings("node");
  with.log_file = folder / "log";
  {
    troupe::node here(with);
    const auto fetch = [&] {
      std::optional<owned_descriptor> caller;
      {
        const as_user other;
        caller = connected(here.port());
      }
      char byte = 0;
      ::send(caller->get(), "anything", 8, MSG_NOSIGNAL);
      return ::recv(caller->get(), &byte, 1, 0);
    };
    for (int i = 0; i < 3; ++i) BOOST_TEST(fetch() <= 0);
    BOOST_TEST(here.status().connections_refused == 3U);
    troupe::node mine(troupe::test::loopback_settings("mine"));
    BOOST_TEST(mine.join("127.0.0.1", here.port()) == "node");
  }
  const auto log = troupe::test::read_text(folder / "log");
  BOOST_TEST(contains(log, "warn "));
  BOOST_TEST(contains(log, "refused a connection: the program at 127.0.0.1:"), log);
  BOOST_TEST(contains(log, "runs as user 64124, this node as user "), log);
}

BOOST_AUTO_TEST_CASE(a_node_sends_no_byte_to_a_program_of_another_user, *other_users* needs_root) {
  std::uint16_t port = 0;
  std::optional<owned_descriptor> there;
  {
    const as_user other;
    there = listening(port);
  }
  troupe::node here(troupe::test::loopback_settings("node"));
  BOOST_CHECK_EXCEPTION(here.join("127.0.0.1", port), troupe::error,
                        troupe::test::says("runs as user 64124, this node as user ", "--insecure"));
  const auto called = accepted(*there);
  char byte = 0;
  BOOST_TEST(::recv(called.get(), &byte, 1, 0) <= 0);
}

BOOST_AUTO_TEST_CASE(an_insecure_node_lets_everybody_in, *other_users* needs_root) {
  auto with = troupe::test::loopback_settings("node");
  with.insecure = true;
  troupe::node here(with);
  std::optional<owned_descriptor> caller;
  {
    const as_user other;
    caller = connected(here.port());
  }
  char byte = 1;
  BOOST_TEST(::recv(caller->get(), &byte, 1, 0) == 1);  // the node greets first
  BOOST_TEST(byte == 0);
}

BOOST_AUTO_TEST_SUITE_END()
