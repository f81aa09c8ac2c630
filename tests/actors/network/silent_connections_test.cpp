// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/network/silent_connections.hpp>

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <list>
#include <memory>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <troupe/actors/support/owned_descriptor.hpp>

using troupe::network::silent_connections;
using troupe::support::owned_descriptor;

namespace {

/// An accepted connection and the other end of it.
struct connection {
  explicit connection(silent_connections& all) {
    std::array<int, 2> ends{};
    BOOST_REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0);
    other = owned_descriptor(ends[0]);
    socket = owned_descriptor(ends[1]);
    silence = all.add(socket.get());
  }

  bool has_ended() const {
    pollfd ends{other.get(), POLLRDHUP, 0};
    return ::poll(&ends, 1, 0) == 1;
  }

  owned_descriptor other;
  owned_descriptor socket;
  silent_connections::token silence;
};

/// Lets the process have so many descriptors.
class descriptor_limit {
 public:
  explicit descriptor_limit(rlim_t most) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit few{most, before_.rlim_max};
    BOOST_REQUIRE(::setrlimit(RLIMIT_NOFILE, &few) == 0);
  }
  ~descriptor_limit() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

}  // namespace

BOOST_AUTO_TEST_SUITE(silent_connection)

BOOST_AUTO_TEST_CASE(one_more_than_the_most_ends_the_oldest) {  // NH-1
  const descriptor_limit enough(2'048);
  silent_connections all;
  std::list<connection> made;
  for (std::size_t i = 0; i < silent_connections::most; ++i) made.emplace_back(all);
  for (const auto& each : made) BOOST_TEST(!each.has_ended());
  made.emplace_back(all);
  BOOST_TEST(made.front().has_ended());
  BOOST_TEST(!(++made.begin())->has_ended());
  BOOST_TEST(!made.back().has_ended());
}

BOOST_AUTO_TEST_CASE(what_has_sent_something_or_is_over_does_not_count) {  // NH-1
  const descriptor_limit enough(2'048);
  silent_connections all;
  std::list<connection> made;
  for (std::size_t i = 0; i < silent_connections::most; ++i) made.emplace_back(all);
  made.front().silence.reset();
  made.pop_back();
  for (int i = 0; i < 2; ++i) made.emplace_back(all);
  for (const auto& each : made) BOOST_TEST(!each.has_ended());
}

BOOST_AUTO_TEST_CASE(some_descriptors_stay_free) {  // NH-2
  const descriptor_limit few(256);
  silent_connections all;
  std::list<connection> silent;
  const auto one_was_ended = [&] {
    return std::any_of(silent.begin(), silent.end(), [](auto& each) { return each.has_ended(); });
  };
  while (silent.size() < 128 && !one_was_ended()) silent.emplace_back(all);
  BOOST_TEST(one_was_ended());
  BOOST_TEST(silent.front().has_ended());
  BOOST_TEST(!silent.back().has_ended());
  std::vector<owned_descriptor> others;  // as many as were left free
  while (others.size() < 256) {
    owned_descriptor next(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (next.get() < 0) break;
    others.push_back(std::move(next));
  }
  BOOST_TEST(others.size() >= 29u);
  BOOST_TEST(others.size() <= 32u);
  others.resize(2);
  for (auto& each : silent) each.silence.reset();
  const auto ended = std::count_if(silent.begin(), silent.end(), [](auto& each) { return each.has_ended(); });
  silent.erase(silent.begin());  // its numbers are free again, and lower than all others
  const connection first(all);
  const connection second(all);
  BOOST_TEST(second.has_ended());
  BOOST_TEST(std::count_if(silent.begin(), silent.end(), [](auto& each) { return each.has_ended(); }) == ended - 1);
}

BOOST_AUTO_TEST_SUITE_END()
