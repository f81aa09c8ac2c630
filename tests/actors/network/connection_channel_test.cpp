// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/network/connection_channel.hpp>

#include <sys/socket.h>
#include <array>
#include <cerrno>
#include <memory>
#include <string>

#include <boost/test/unit_test.hpp>

#include "actors/network/loopback_connection.hpp"

namespace {

using troupe::network::channel_listener;
using troupe::network::connection_channel;
using troupe::network::ring_writer;
using troupe::support::owned_descriptor;
using troupe::test::loopback_connection;
using state = connection_channel::state;

std::string read_from(connection_channel& channel, std::size_t most = 100) {
  std::string result(most, '\0');
  const auto came = channel.read({result.data(), most}, {});
  if (came < 0) BOOST_TEST(errno == EAGAIN);
  result.resize(came < 0 ? 0 : static_cast<std::size_t>(came));
  return result;
}

/// Writes the bytes into the channel. Returns the errno of a write that fails; otherwise 0.
int error_of_write(connection_channel& channel, const std::string& bytes) {
  if (channel.write(bytes.data(), bytes.size(), false) < 0) return errno;
  return 0;
}

/// The two ends of a connection, with a channel that both have open.
struct two_ends {
  loopback_connection over;
  std::unique_ptr<connection_channel> caller = std::make_unique<connection_channel>(true);
  connection_channel called{true};

  two_ends() {
    caller->expect(over.caller.get());
    BOOST_REQUIRE(called.search(over.called.get()).has_value());
    BOOST_REQUIRE(caller->search(over.caller.get()).has_value());
  }

  /// Moves the direction from the called end to the calling end into shared memory.
  void move() {
    called.move_outgoing();
    BOOST_REQUIRE(called.writes());
    BOOST_REQUIRE(caller->reads());
  }

  void fill() {
    const std::string some(ring_writer::most_at_once, 'x');
    while (error_of_write(called, some) == 0) continue;
  }
};

bool rings(const connection_channel& channel) {
  char any = 0;
  return ::recv(channel.bell(), &any, 1, MSG_DONTWAIT) == 1;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(connection_channels)

BOOST_AUTO_TEST_CASE(an_end_that_may_share_memory_searches_until_it_has_found_the_channel) {
  const loopback_connection over;
  connection_channel caller(true);
  connection_channel called(true);
  caller.expect(over.caller.get());
  BOOST_TEST((caller.now() == state::searching));
  BOOST_TEST((called.now() == state::searching));
  BOOST_TEST(!caller.search(over.caller.get()).has_value());
  BOOST_TEST((caller.now() == state::searching));
  BOOST_TEST(called.search(over.called.get()).has_value());
  BOOST_TEST((called.now() == state::open));
  BOOST_TEST(caller.search(over.caller.get()).has_value());
  BOOST_TEST((caller.now() == state::open));
}

BOOST_AUTO_TEST_CASE(an_end_that_may_not_share_memory_opens_no_door) {
  const loopback_connection over;
  connection_channel caller(false);
  BOOST_TEST((caller.now() == state::absent));
  caller.expect(over.caller.get());
  BOOST_TEST((caller.now() == state::absent));
  BOOST_TEST(!channel_listener::connect(over.called.get()).channel);
}

BOOST_AUTO_TEST_CASE(a_connection_that_is_not_on_loopback_has_no_channel) {
  std::array<int, 2> pair{};
  BOOST_REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair.data()) == 0);
  const owned_descriptor one(pair[0]);
  const owned_descriptor other(pair[1]);
  connection_channel caller(true);
  caller.expect(one.get());
  BOOST_TEST((caller.now() == state::absent));
  connection_channel called(true);
  BOOST_TEST(!called.search(other.get()).has_value());
  BOOST_TEST((called.now() == state::absent));
}

BOOST_AUTO_TEST_CASE(the_called_end_searches_once) {
  const loopback_connection over;
  connection_channel called(true);
  BOOST_TEST(!called.search(over.called.get()).has_value());
  BOOST_TEST((called.now() == state::absent));
  BOOST_TEST(!called.reads());
  BOOST_TEST(!called.writes());
  called.move_outgoing();
  BOOST_TEST(!called.writes());
}

BOOST_AUTO_TEST_CASE(the_calling_end_closes_its_listener_after_its_last_search) {
  const loopback_connection over;
  connection_channel caller(true);
  caller.expect(over.caller.get());
  for (int i = 1; i < connection_channel::searches_of_caller; ++i) {
    BOOST_TEST(!caller.search(over.caller.get()).has_value());
    BOOST_TEST((caller.now() == state::searching));
  }
  BOOST_TEST(!caller.search(over.caller.get()).has_value());
  BOOST_TEST((caller.now() == state::absent));
  BOOST_TEST(!channel_listener::connect(over.called.get()).channel);
}

BOOST_AUTO_TEST_CASE(the_calling_end_closes_its_listener_once_it_has_the_channel) {
  const two_ends ends;
  BOOST_TEST(!channel_listener::connect(ends.over.called.get()).channel);
}

BOOST_AUTO_TEST_CASE(a_direction_stays_with_tcp_until_the_other_end_has_the_memory) {
  const loopback_connection over;
  connection_channel caller(true);
  connection_channel called(true);
  caller.expect(over.caller.get());
  BOOST_REQUIRE(called.search(over.called.get()).has_value());
  called.move_outgoing();
  BOOST_TEST(!called.writes());
  BOOST_REQUIRE(caller.search(over.caller.get()).has_value());
  called.move_outgoing();
  BOOST_TEST(called.writes());
  BOOST_TEST(!caller.writes());
}

// CA-1
BOOST_AUTO_TEST_CASE(bytes_in_memory_wait_for_bytes_that_left_before_them_by_tcp) {
  two_ends ends;
  auto& reader = *ends.caller;
  ends.called.count_sent(10);
  ends.called.move_outgoing();
  BOOST_TEST(error_of_write(ends.called, "after") == 0);
  BOOST_TEST(!reader.is_empty());
  BOOST_TEST(read_from(reader) == "");
  reader.count_received(4);
  BOOST_TEST(!reader.reads());
  BOOST_TEST(read_from(reader) == "");
  reader.count_received(6);
  BOOST_TEST(!reader.has_read());
  BOOST_TEST(reader.reads());
  BOOST_TEST(reader.has_read());
  BOOST_TEST(read_from(reader, 3) == "aft");
  BOOST_TEST(read_from(reader) == "er");
  BOOST_TEST(reader.is_empty());
}

BOOST_AUTO_TEST_CASE(bytes_that_leave_after_a_direction_has_moved_are_not_counted) {
  two_ends ends;
  ends.called.move_outgoing();
  ends.called.count_sent(3);
  ends.called.move_outgoing();
  BOOST_TEST(error_of_write(ends.called, "abc") == 0);
  BOOST_TEST(read_from(*ends.caller) == "abc");
}

BOOST_AUTO_TEST_CASE(bytes_that_moved_are_counted_at_both_ends) {
  two_ends ends;
  ends.move();
  BOOST_TEST(error_of_write(ends.called, "abcde") == 0);
  BOOST_TEST(ends.called.moved() == 5u);
  BOOST_TEST(read_from(*ends.caller, 2) == "ab");
  BOOST_TEST(ends.caller->moved() == 2u);
}

// CA-2
BOOST_AUTO_TEST_CASE(a_reader_that_sleeps_is_rung_once) {
  two_ends ends;
  ends.move();
  ends.caller->wake_reader();
  BOOST_TEST(error_of_write(ends.called, "a") == 0);
  BOOST_TEST(!rings(*ends.caller));
  BOOST_TEST(!ends.caller->may_sleep(true, false));
  read_from(*ends.caller);
  BOOST_TEST(ends.caller->may_sleep(true, false));
  BOOST_TEST(error_of_write(ends.called, "b") == 0);
  BOOST_TEST(error_of_write(ends.called, "c") == 0);
  BOOST_TEST(rings(*ends.caller));
  BOOST_TEST(!rings(*ends.caller));
}

// CA-1
BOOST_AUTO_TEST_CASE(a_reader_sleeps_beside_bytes_that_have_to_wait_for_tcp) {
  two_ends ends;
  ends.called.count_sent(1);
  ends.called.move_outgoing();
  BOOST_TEST(error_of_write(ends.called, "a") == 0);
  BOOST_TEST(ends.caller->may_sleep(true, false));
  ends.caller->count_received(1);
  BOOST_TEST(!ends.caller->may_sleep(true, false));
}

// CA-2
BOOST_AUTO_TEST_CASE(a_writer_that_waits_for_space_is_rung_once_there_is_enough) {
  two_ends ends;
  ends.move();
  ends.fill();
  BOOST_TEST(error_of_write(ends.called, "x") == EAGAIN);
  BOOST_TEST(ends.called.may_sleep(false, true));
  const auto read = read_from(*ends.caller, ring_writer::enough_space - 1);
  BOOST_TEST(read.size() == ring_writer::enough_space - 1);
  BOOST_TEST(!rings(ends.called));
  BOOST_TEST(read_from(*ends.caller, 1) == "x");
  BOOST_TEST(rings(ends.called));
  BOOST_TEST(!ends.called.may_sleep(false, true));
}

// CA-3
BOOST_AUTO_TEST_CASE(an_end_that_was_cut_reads_what_is_in_memory_and_writes_nothing) {
  two_ends ends;
  ends.move();
  BOOST_TEST(error_of_write(ends.called, "left") == 0);
  ends.caller->move_outgoing();
  ends.caller->cut();
  BOOST_TEST((ends.caller->now() == state::cut));
  BOOST_TEST(error_of_write(*ends.caller, "x") == EPIPE);
  BOOST_TEST(read_from(*ends.caller) == "left");
}

// CA-3: the memory outlives the end that wrote.
BOOST_AUTO_TEST_CASE(bytes_of_an_end_that_is_gone_are_read) {
  two_ends ends;
  ends.caller->move_outgoing();
  BOOST_TEST(error_of_write(*ends.caller, "last") == 0);
  BOOST_TEST(ends.called.take_rings());  // the ring of that write
  BOOST_TEST(ends.called.take_rings());
  ends.caller.reset();
  BOOST_TEST(!ends.called.take_rings());
  ends.called.cut();
  BOOST_TEST(ends.called.reads());
  BOOST_TEST(read_from(ends.called) == "last");
}

BOOST_AUTO_TEST_SUITE_END()
