// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/network/accepting.hpp>

#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <optional>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <troupe/actors/support/owned_descriptor.hpp>

#include "support/no_more_descriptors.hpp"

BOOST_AUTO_TEST_SUITE(accepting_connections)

namespace {

using troupe::network::accepting;
using troupe::support::owned_descriptor;

}  // namespace

BOOST_AUTO_TEST_CASE(without_any_descriptor_the_thread_waits_and_says_so) {  // AW-3
  const owned_descriptor listens(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  BOOST_TEST_REQUIRE(::listen(listens.get(), 1) == 0);
  BOOST_TEST_REQUIRE(::getsockname(listens.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
  const owned_descriptor caller(::socket(AF_INET, SOCK_STREAM, 0));
  BOOST_TEST_REQUIRE(::connect(caller.get(), reinterpret_cast<const sockaddr*>(&address), size) == 0);
  std::vector<int> shortages;
  int accepted = -1;
  std::optional<accepting> how;
  {
    const troupe::test::no_more_descriptors none;
    how.emplace([&](int problem) { shortages.push_back(problem); });
    const auto before = std::chrono::steady_clock::now();
    for (int i = 0; i < 3; ++i) BOOST_TEST(!how->try_accept(accepted, listens.get()));
    BOOST_TEST((std::chrono::steady_clock::now() - before >= 3 * accepting::pause));
  }
  BOOST_TEST(shortages == std::vector<int>(3, EMFILE), boost::test_tools::per_element());
  BOOST_TEST(how->try_accept(accepted, listens.get()));
  const owned_descriptor called(accepted);
  BOOST_TEST(shortages.size() == 3U);
}

BOOST_AUTO_TEST_SUITE_END()
