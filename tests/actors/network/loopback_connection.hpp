// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <boost/test/unit_test.hpp>

#include <troupe/actors/support/owned_descriptor.hpp>

namespace troupe::test {

/// The two ends of a TCP connection on loopback, by IPv4 or IPv6. `from`: the caller's IPv4 address, for example 127.0.0.2, which
/// is another host to whom looks at addresses.
struct loopback_connection {
  support::owned_descriptor caller;
  support::owned_descriptor called;

  explicit loopback_connection(int family = AF_INET, const char* from = nullptr) {
    const support::owned_descriptor listens(::socket(family, SOCK_STREAM, 0));
    sockaddr_storage address{};
    address.ss_family = static_cast<sa_family_t>(family);
    if (family == AF_INET)
      reinterpret_cast<sockaddr_in&>(address).sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    else
      reinterpret_cast<sockaddr_in6&>(address).sin6_addr = in6addr_loopback;
    socklen_t size = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    auto* plain = reinterpret_cast<sockaddr*>(&address);
    BOOST_REQUIRE(::bind(listens.get(), plain, size) == 0);
    BOOST_REQUIRE(::listen(listens.get(), 1) == 0);
    BOOST_REQUIRE(::getsockname(listens.get(), plain, &size) == 0);
    caller = support::owned_descriptor(::socket(family, SOCK_STREAM, 0));
    if (from != nullptr) {
      sockaddr_in own{};
      own.sin_family = AF_INET;
      BOOST_REQUIRE(::inet_pton(AF_INET, from, &own.sin_addr) == 1);
      BOOST_REQUIRE(::bind(caller.get(), reinterpret_cast<const sockaddr*>(&own), sizeof own) == 0);
    }
    BOOST_REQUIRE(::connect(caller.get(), plain, size) == 0);
    called = support::owned_descriptor(::accept(listens.get(), nullptr, nullptr));
    BOOST_REQUIRE(static_cast<bool>(called));
  }
};

}  // namespace troupe::test
