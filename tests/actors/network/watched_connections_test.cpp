// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/network/watched_connections.hpp>

#include <chrono>
#include <future>
#include <string>
#include <thread>

#include <boost/test/unit_test.hpp>
#include <caf/io/broker.hpp>

#include "actors/network/channel_by_hand.hpp"

BOOST_AUTO_TEST_SUITE(watched_connections)

namespace {

using namespace troupe::test;
using caf::io::receive_policy;

}  // namespace

// WC-1
BOOST_AUTO_TEST_CASE(a_quiet_connection_is_dropped_and_woken_by_the_other_end) {
  channel_to_broker over(receive_policy::exactly(5));
  std::promise<void> first;
  inbox got(10);
  over.on_data([&, chunks = 0](caf::io::broker*, const std::string& bytes) mutable {
    got.add(bytes);
    if (++chunks == 1) first.set_value();
  });
  over.end.met.channel->outgoing.begin(5);
  over.end.write("first");
  BOOST_REQUIRE((first.get_future().wait_for(long_enough) == std::future_status::ready));
  bool unwatched = false;
  const auto drop = [&] {  // run() keeps the network thread awake, so only the drop sets the sleep flag
    over.to.run([&](caf::io::broker*) { unwatched = over.end.met.channel->outgoing.has_to_wake_reader(); });
    return unwatched;
  };
  BOOST_REQUIRE(becomes_true(drop, long_enough));
  over.end.write("other");
  over.end.ring();
  BOOST_TEST(got.all() == "firstother");
}

// TS-3, WC-2: the network thread sleeps for longer than `watched_for`. Then the end of the connection wakes the thread.
BOOST_AUTO_TEST_CASE(a_connection_that_was_quiet_for_long_is_forgotten_when_it_ends) {
  channel_to_broker over(receive_policy::exactly(5));
  inbox got(5);
  over.on_data([&](caf::io::broker*, const std::string& bytes) { got.add(bytes); });
  over.end.met.channel->outgoing.begin(5);
  over.end.write("12345");
  BOOST_TEST(got.all() == "12345");
  BOOST_REQUIRE(becomes_true([&] { return over.end.met.channel->outgoing.has_to_wake_reader(); }, long_enough));
  const auto long_quiet = std::chrono::steady_clock::now() + 2 * troupe::network::watched_connections::watched_for;
  while (std::chrono::steady_clock::now() < long_quiet) std::this_thread::yield();
  over.to.close_client();
  BOOST_TEST(over.is_closed());
}

BOOST_AUTO_TEST_SUITE_END()
