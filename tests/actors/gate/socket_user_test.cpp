// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/gate/socket_user.hpp>

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "actors/network/loopback_connection.hpp"
#include "support/as_user.hpp"

BOOST_AUTO_TEST_SUITE(socket_users)

namespace {

using troupe::gate::socket_report;
using troupe::test::as_user;
using kind = troupe::gate::socket_report::kind;

sockaddr_storage address(int (*of)(int, sockaddr*, socklen_t*), const troupe::support::owned_descriptor& socket) {
  sockaddr_storage result{};
  socklen_t size = sizeof result;
  BOOST_REQUIRE(of(socket.get(), reinterpret_cast<sockaddr*>(&result), &size) == 0);
  return result;
}

sockaddr_storage nobody(int family) {
  sockaddr_storage result{};
  result.ss_family = static_cast<sa_family_t>(family);
  return result;
}

using question = socket_report (*)(const sockaddr_storage&, const sockaddr_storage&);
const question both_ways[] = {troupe::gate::detail::ask_sock_diag, troupe::gate::detail::read_proc};

/// A socket that listens on loopback by IPv4 or IPv6, or on all addresses of both.
struct listener {
  explicit listener(int family, bool everywhere = false) : socket(::socket(family, SOCK_STREAM, 0)) {
    sockaddr_storage at = nobody(family);
    if (family == AF_INET && !everywhere) reinterpret_cast<sockaddr_in&>(at).sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (family == AF_INET6 && !everywhere) reinterpret_cast<sockaddr_in6&>(at).sin6_addr = in6addr_loopback;
    BOOST_REQUIRE(::bind(socket.get(), reinterpret_cast<sockaddr*>(&at), sizeof at) == 0);
    BOOST_REQUIRE(::listen(socket.get(), 4) == 0);
  }
  std::uint16_t port() const {
    const auto here = address(::getsockname, socket);
    return reinterpret_cast<const sockaddr_in&>(here).sin_port;  // at the same offset in sockaddr_in6
  }
  troupe::support::owned_descriptor socket;
};

}  // namespace

BOOST_AUTO_TEST_CASE(the_kernel_says_whose_each_end_is) {
  for (int family : {AF_INET, AF_INET6}) {
    const troupe::test::loopback_connection both(family);
    for (const auto ask : both_ways) {
      for (const auto* end : {&both.caller, &both.called}) {
        const auto found = ask(address(::getsockname, *end), address(::getpeername, *end));
        BOOST_TEST((found.what == kind::held));
        BOOST_TEST(found.user == ::geteuid());
        BOOST_TEST(found.is_established);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a_socket_of_another_user_is_told_apart,
                     *boost::unit_test::label("other_users") *
                       boost::unit_test::precondition(troupe::test::can_be_another_user)) {
  for (int family : {AF_INET, AF_INET6}) {
    const listener mine(family);
    troupe::support::owned_descriptor caller;
    {
      const as_user other;
      caller = troupe::support::owned_descriptor(::socket(family, SOCK_STREAM, 0));
    }
    const auto to = address(::getsockname, mine.socket);
    BOOST_REQUIRE(::connect(caller.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0);
    for (const auto ask : both_ways) {
      const auto found = ask(address(::getsockname, caller), address(::getpeername, caller));
      BOOST_TEST((found.what == kind::held));
      BOOST_TEST(found.user == as_user::somebody);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_connection_that_was_not_accepted_or_was_closed_is_held_by_nobody) {
  for (int family : {AF_INET, AF_INET6}) {
    const listener mine(family);
    const auto to = address(::getsockname, mine.socket);
    troupe::support::owned_descriptor caller(::socket(family, SOCK_STREAM, 0));
    BOOST_REQUIRE(::connect(caller.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0);
    const auto from = address(::getsockname, caller);
    for (const auto ask : both_ways) BOOST_TEST((ask(to, from).what == kind::not_held));
    const troupe::support::owned_descriptor called(::accept(mine.socket.get(), nullptr, nullptr));
    for (const auto ask : both_ways) BOOST_TEST((ask(to, from).what == kind::held));
    caller = {};
    for (const auto ask : both_ways) BOOST_TEST((ask(from, to).what == kind::not_held));
  }
}

BOOST_AUTO_TEST_CASE(a_socket_that_listens_is_found_by_each_of_its_addresses) {
  for (const bool everywhere : {false, true})
    for (int family : {AF_INET, AF_INET6}) {
      const listener mine(family, everywhere);
      for (int asked : {AF_INET, AF_INET6}) {
        if (asked != family && !(everywhere && family == AF_INET6)) continue;
        auto at = nobody(asked);
        reinterpret_cast<sockaddr_in&>(at).sin_port = mine.port();
        if (asked == AF_INET)
          reinterpret_cast<sockaddr_in&>(at).sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        else
          reinterpret_cast<sockaddr_in6&>(at).sin6_addr = in6addr_loopback;
        for (const auto ask : both_ways) {
          const auto found = ask(at, nobody(asked));
          BOOST_TEST((found.what == kind::held), "asked by " << asked << " of " << family << ", everywhere " << everywhere);
          BOOST_TEST(found.user == ::geteuid());
          BOOST_TEST(!found.is_established);
        }
      }
    }
}

BOOST_AUTO_TEST_CASE(ends_of_one_connection_that_see_two_forms_of_an_address_are_found) {
  const listener mine(AF_INET6, true);
  auto to = nobody(AF_INET);
  reinterpret_cast<sockaddr_in&>(to).sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  reinterpret_cast<sockaddr_in&>(to).sin_port = mine.port();
  const troupe::support::owned_descriptor caller(::socket(AF_INET, SOCK_STREAM, 0));
  BOOST_REQUIRE(::connect(caller.get(), reinterpret_cast<const sockaddr*>(&to), sizeof(sockaddr_in)) == 0);
  const troupe::support::owned_descriptor called(::accept(mine.socket.get(), nullptr, nullptr));
  BOOST_REQUIRE((address(::getpeername, called).ss_family == AF_INET6));
  for (const auto ask : both_ways) {
    BOOST_TEST((ask(address(::getpeername, called), address(::getsockname, called)).what == kind::held));
    BOOST_TEST((ask(address(::getpeername, caller), address(::getsockname, caller)).what == kind::held));
  }
}

// In a user namespace all users that it does not know have one number, which may be the process's own number too.
BOOST_AUTO_TEST_CASE(the_number_of_all_unknown_users_names_nobody) {
  BOOST_TEST(troupe::gate::names_somebody(0));
  BOOST_TEST(troupe::gate::names_somebody(::geteuid()));
  const auto child = ::fork();
  if (child == 0) {
    if (::unshare(CLONE_NEWUSER) != 0) ::_exit(2);
    ::_exit(::geteuid() != 0 && !troupe::gate::names_somebody(::geteuid()) ? 0 : 1);
  }
  int how = 0;
  BOOST_TEST_REQUIRE(::waitpid(child, &how, 0) == child);
  if (WIFEXITED(how) && WEXITSTATUS(how) == 2) {
    BOOST_TEST_MESSAGE("no user namespace can be made here");
    return;
  }
  BOOST_TEST(how == 0);
}

BOOST_AUTO_TEST_SUITE_END()
