// SPDX-License-Identifier: BSD-3-Clause
// Connections that use shared memory. The other end is the test itself (end_by_hand), or a scribe too.
#include <troupe/actors/network/tcp_scribe.hpp>

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <fstream>
#include <functional>
#include <future>
#include <random>
#include <string>
#include <utility>

#include <boost/test/unit_test.hpp>
#include <caf/actor_system.hpp>
#include <caf/io/broker.hpp>
#include <caf/io/middleman.hpp>
#include <caf/send.hpp>

#include <troupe/actors/network/memory_channel.hpp>
#include <troupe/actors/nodes/system_config.hpp>

#include "actors/network/calling_broker.hpp"
#include "actors/network/channel_by_hand.hpp"

BOOST_AUTO_TEST_SUITE(tcp_scribe_memory)

namespace {

using namespace troupe::test;
using caf::io::receive_policy;

}  // namespace

// TS-5: the later bytes are in memory before TCP brings the earlier ones.
BOOST_AUTO_TEST_CASE(what_was_sent_before_memory_was_used_is_consumed_before_what_is_in_memory) {
  channel_to_broker over(receive_policy::exactly(1));
  inbox got(40);
  over.on_data([&](caf::io::broker*, const std::string& bytes) { got.add(bytes); });
  const auto sent = some_bytes(40);
  over.end.met.channel->outgoing.begin(5 + 20);
  over.end.write(sent.substr(20));
  over.end.ring();
  for (int i = 0; i < 10; ++i) over.to.run([&](caf::io::broker*) { BOOST_TEST(!got.has_more_than(0)); });
  over.to.send(sent.substr(0, 10));
  for (int i = 0; i < 10; ++i) over.to.run([&](caf::io::broker*) { BOOST_TEST(!got.has_more_than(10)); });
  over.to.send(sent.substr(10, 10));
  BOOST_TEST((got.all() == sent));
}

// TS-5, TS-6: more bytes than one event takes are in memory, and the connection is not watched when TCP brings the earlier
// ones.
BOOST_AUTO_TEST_CASE(all_bytes_that_waited_in_memory_are_consumed_once_tcp_has_brought_the_earlier_ones) {
  channel_to_broker over(receive_policy::exactly(5));
  const auto sent = some_bytes(900'005);
  inbox got(sent.size());
  over.on_data([&](caf::io::broker*, const std::string& bytes) { got.add(bytes); });
  over.end.met.channel->outgoing.begin(5 + 5);
  over.end.write(sent.substr(5));
  over.until_unwatched();
  over.to.send(sent.substr(0, 5));
  BOOST_TEST((got.all() == sent));
}

// TS-1, TS-5
BOOST_AUTO_TEST_CASE(a_scribe_writes_into_memory_once_the_other_end_has_it) {
  broker_connection to(receive_policy::exactly(1));
  end_by_hand end(to.client);
  std::promise<void> heard;
  to.on_data = [&](caf::io::broker*, const std::string&) { heard.set_value(); };
  to.send("x");
  BOOST_REQUIRE((heard.get_future().wait_for(long_enough) == std::future_status::ready));
  to.write("by tcp");
  BOOST_TEST(to.receive(6) == "by tcp");
  end.take_channel();
  BOOST_TEST(!end.met.channel->incoming.has_begun_after(6));
  to.write("in memory");
  BOOST_TEST(end.read(9) == "in memory");
  BOOST_TEST(end.met.channel->incoming.has_begun_after(6));
}

// TS-1, TS-5: the socket is full when the other end takes the memory. What TCP has taken by then comes by TCP.
BOOST_AUTO_TEST_CASE(a_scribe_that_waits_for_its_socket_goes_on_in_memory) {
  broker_connection to(receive_policy::exactly(1));
  end_by_hand end(to.client);
  std::promise<void> heard;
  to.on_data = [&](caf::io::broker*, const std::string&) { heard.set_value(); };
  to.send("x");
  BOOST_REQUIRE((heard.get_future().wait_for(long_enough) == std::future_status::ready));
  const auto sent = some_bytes(std::size_t{24} << 20);
  to.write(sent);
  to.settle();  // afterwards the socket is full
  end.take_channel();
  std::string got;
  std::string chunk(100'000, '\0');
  const auto has_moved = [&] {
    const auto came = ::recv(to.client, chunk.data(), chunk.size(), MSG_DONTWAIT);
    if (came > 0) got.append(chunk, 0, static_cast<std::size_t>(came));
    return end.met.channel->incoming.has_begun_after(got.size());
  };
  BOOST_REQUIRE(becomes_true(has_moved, long_enough));
  BOOST_TEST(got.size() < sent.size());
  got += end.read(sent.size() - got.size());
  BOOST_TEST((got == sent));
}

// TS-6: both ends sleep whenever they may. Every hundredth time the test waits until the network thread sleeps.
BOOST_AUTO_TEST_CASE(two_ends_that_sleep_wake_each_other) {
  channel_to_broker over(receive_policy::exactly(5));
  const auto let_sleep = [&] { return over.end.met.channel->outgoing.has_to_wake_reader(); };
  over.on_data([&](caf::io::broker* self, const std::string& bytes) {
    self->write(over.to.handle, bytes.size(), bytes.data());
    self->flush(over.to.handle);
  });
  over.end.met.channel->outgoing.begin(5);
  for (int i = 0; i < 2'000; ++i) {
    const auto sent = std::to_string(10'000 + i);
    if (i % 100 == 0 && i > 0) BOOST_REQUIRE(becomes_true(let_sleep, long_enough));
    over.end.write(sent);
    if (i % 100 == 0) over.end.ring();  // let_sleep() has cleared the sleep flag, so write() rang nobody
    BOOST_REQUIRE(over.end.read(5) == sent);
  }
}

// TS-1, TS-6: the broker writes much more than the channel has space for, first while the connection is watched, then when it is
// not. The connection ends after the last byte.
BOOST_AUTO_TEST_CASE(what_there_is_no_space_for_in_memory_leaves_later_and_before_the_end) {
  channel_to_broker over(receive_policy::exactly(1));
  const auto sent = some_bytes(std::size_t{6} << 20);
  over.to.write(sent);
  over.to.settle();  // afterwards the channel is full
  BOOST_TEST((over.end.read(sent.size()) == sent));
  over.until_unwatched();
  over.to.run([&](caf::io::broker* self) {
    write_in(self, over.to.handle, sent);
    write_in(self, over.to.handle, "end");
    self->close(over.to.handle);
  });
  BOOST_TEST((over.end.read(sent.size() + 3) == sent + "end"));
  BOOST_TEST(over.to.receive(1) == "");
  BOOST_TEST(becomes_true([] { return channels_of_this_process() == 1; }, long_enough));  // only the caller's end is left
}

// TS-5
BOOST_AUTO_TEST_CASE(what_was_in_memory_is_consumed_before_the_end) {
  channel_to_broker over(receive_policy::exactly(3), "one");
  const auto sent = some_bytes(900'000);
  std::string got;
  bool came_after_the_end = false;
  over.on_data([&](caf::io::broker*, const std::string& bytes) {
    came_after_the_end = came_after_the_end || over.to.closed != 0;
    got += bytes;
  });
  over.end.met.channel->outgoing.begin(3);
  over.end.write(sent);
  over.to.close_client();
  over.end.met.bell = troupe::support::owned_descriptor();
  BOOST_TEST(over.is_closed());
  over.to.run([&](caf::io::broker*) { BOOST_TEST((got == sent)); });
  BOOST_TEST(!came_after_the_end);
}

// TS-2, TS-6: when the broker goes on, the connection is no longer watched.
BOOST_AUTO_TEST_CASE(a_halted_broker_gets_nothing_out_of_memory) {
  std::promise<void> first;
  inbox got(50);
  int chunks = 0;  // counted beside got.all()
  channel_to_broker over(receive_policy::exactly(5));
  over.on_data([&](caf::io::broker* self, const std::string& bytes) {
    got.add(bytes);
    if (++chunks > 1) return;
    self->halt(over.to.handle);
    first.set_value();
  });
  const auto sent = some_bytes(50);
  over.end.met.channel->outgoing.begin(5);
  over.end.write(sent.substr(0, 25));
  BOOST_REQUIRE((first.get_future().wait_for(long_enough) == std::future_status::ready));
  over.end.write(sent.substr(25));
  over.end.ring();
  over.until_unwatched([&](caf::io::broker*) { BOOST_REQUIRE(chunks == 1); });
  over.to.run([&](caf::io::broker* self) { self->trigger(over.to.handle); });
  BOOST_TEST((got.all() == sent));
}

// TS-3: the broker reads nothing, so only its writes can find the end of the connection.
BOOST_AUTO_TEST_CASE(a_halted_broker_that_writes_is_told_that_nobody_reads_memory) {
  channel_to_broker over(receive_policy::exactly(5));
  over.to.run([&](caf::io::broker* self) { self->halt(over.to.handle); });
  over.to.write(some_bytes(3'000'000));
  over.end.read(100);
  over.end.met = {};
  over.to.close_client();
  BOOST_TEST(over.is_closed());
}

// TS-3
BOOST_AUTO_TEST_CASE(counters_that_cannot_be_end_the_connection) {
  channel_to_broker over(receive_policy::exactly(5));
  over.end.met.channel->outgoing.begin(5);
  const std::string odd(12'345, 'x');
  over.end.met.channel->outgoing.write(odd.data(), odd.size());
  std::uint64_t* written = nullptr;  // the counter of written bytes, in the mapping of one of the ends
  std::ifstream maps("/proc/self/maps");
  for (std::string line; written == nullptr && std::getline(maps, line);) {
    if (line.find("memfd:troupe channel") == std::string::npos) continue;
    auto* words = reinterpret_cast<std::uint64_t*>(std::stoull(line, nullptr, 16));
    auto* end = words + 512;
    auto* found = std::find_if(words, end, [&](std::uint64_t& each) { return std::atomic_ref(each).load() == odd.size(); });
    if (found != end) written = found;
  }
  BOOST_REQUIRE(written != nullptr);
  std::atomic_ref(*written).store(~std::uint64_t{0});
  over.end.ring();
  BOOST_TEST(over.is_closed());
}

BOOST_AUTO_TEST_CASE(bytes_by_tcp_after_memory_was_used_end_the_connection) {
  channel_to_broker over(receive_policy::exactly(5));
  inbox got(5);
  over.on_data([&](caf::io::broker*, const std::string& bytes) { got.add(bytes); });
  over.end.met.channel->outgoing.begin(5);
  over.end.write("12345");
  BOOST_TEST(got.all() == "12345");
  over.to.send("more.");
  BOOST_TEST(over.is_closed());
  over.to.run([&](caf::io::broker*) { BOOST_TEST(!got.has_more_than(5)); });
  BOOST_TEST(becomes_true([] { return channels_of_this_process() == 1; }, long_enough));  // only the caller's end is left
}

// TS-5: the memory outlives the process.
BOOST_AUTO_TEST_CASE(what_a_process_that_was_killed_left_in_memory_is_consumed) {
  const auto sent = some_bytes(700'000);
  std::array<int, 2> pipe_to_child{};
  BOOST_REQUIRE(::pipe(pipe_to_child.data()) == 0);
  const auto child = ::fork();
  if (child == 0) {
    std::uint16_t port = 0;
    if (::read(pipe_to_child[0], &port, sizeof port) != sizeof port) ::_exit(1);
    const int caller = called_on_loopback(port);
    auto listener = troupe::network::channel_listener::open(caller);
    char go = 0;
    if (::read(pipe_to_child[0], &go, 1) != 1 || ::send(caller, "first", 5, 0) != 5) ::_exit(1);
    troupe::network::channel_with_bell met;
    while (!met.channel) met = listener->answer();
    met.channel->outgoing.begin(5);
    for (std::size_t at = 0; at < sent.size();) at += met.channel->outgoing.write(sent.data() + at, sent.size() - at).value();
    ::kill(::getpid(), SIGKILL);
  }
  inbox got(5 + sent.size());
  broker_connection to(receive_policy::exactly(5), {}, [&](std::uint16_t port) {
    BOOST_REQUIRE(::write(pipe_to_child[1], &port, sizeof port) == sizeof port);
    return -1;
  });
  to.run([&](caf::io::broker*) { to.on_data = [&](caf::io::broker*, const std::string& bytes) { got.add(bytes); }; });
  BOOST_REQUIRE(::write(pipe_to_child[1], "g", 1) == 1);
  BOOST_TEST((got.all() == "first" + sent));
  int how = 0;
  BOOST_TEST(::waitpid(child, &how, 0) == child);
  BOOST_TEST(WTERMSIG(how) == SIGKILL);
  for (const int each : pipe_to_child) ::close(each);
}

BOOST_AUTO_TEST_CASE(an_end_that_never_takes_the_memory_is_served_by_tcp) {
  broker_connection to(receive_policy::exactly(1));
  const end_by_hand end(to.client);
  to.on_data = [&](caf::io::broker* self, const std::string& bytes) {
    self->write(to.handle, bytes.size(), bytes.data());
    self->flush(to.handle);
  };
  for (int i = 0; i < 40; ++i) {
    to.send("a");
    BOOST_TEST(to.receive(1) == "a");
  }
}

BOOST_AUTO_TEST_CASE(where_shared_memory_is_turned_off_nobody_knocks) {
  broker_connection to(receive_policy::exactly(1), without_shared_memory());
  auto listener = troupe::network::channel_listener::open(to.client);
  to.on_data = [&](caf::io::broker* self, const std::string& bytes) {
    self->write(to.handle, bytes.size(), bytes.data());
    self->flush(to.handle);
  };
  for (int i = 0; i < 3; ++i) {
    to.send("a");
    BOOST_TEST(to.receive(1) == "a");
  }
  BOOST_TEST(!listener->answer().channel);
}

// TS-1, TS-5: the connection has a channel or has none. With a channel, bytes are on their way by TCP when a direction moves to
// memory.
BOOST_AUTO_TEST_CASE(two_scribes_get_everything_across_by_memory_or_by_tcp) {
  const auto sent = some_bytes(std::size_t{3} << 20);
  for (const bool first_shares : {true, false})
    for (const bool second_shares : {true, false}) {
      const auto options = [](bool shares) { return shares ? troupe::settings{} : without_shared_memory(); };
      calling_broker caller(options(first_shares));
      const std::function<int(std::uint16_t)> call = [&](std::uint16_t port) {
        caller.call(port);
        return -1;
      };
      broker_connection called(receive_policy::at_most(10'000), options(second_shares), call);
      inbox there(sent.size());
      inbox back(sent.size());
      called.on_data = [&](caf::io::broker* self, const std::string& bytes) {
        there.add(bytes);
        self->write(called.handle, bytes.size(), bytes.data());
        self->flush(called.handle);
      };
      caller.on_data = [&](const std::string& bytes) { back.add(bytes); };
      std::mt19937 random(3);
      for (std::size_t at = 0; at < sent.size();) {
        const auto bytes = std::min<std::size_t>(1 + random() % (at < 10'000 ? 50 : 100'000), sent.size() - at);
        caller.write(sent.substr(at, bytes));
        at += bytes;
      }
      BOOST_TEST((there.all() == sent));
      BOOST_TEST((back.all() == sent));
      BOOST_TEST(channels_of_this_process() == (first_shares && second_shares ? 2 : 0));
    }
  BOOST_TEST(channels_of_this_process() == 0);
}

BOOST_AUTO_TEST_SUITE_END()
