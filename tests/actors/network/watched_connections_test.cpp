// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/network/watched_connections.hpp>

#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <atomic>
#include <chrono>
#include <future>
#include <optional>
#include <string>
#include <thread>

#include <boost/test/unit_test.hpp>
#include <caf/io/broker.hpp>

#include "actors/network/calling_broker.hpp"
#include "actors/network/channel_by_hand.hpp"

namespace {

std::atomic<int> rings{0};

}  // namespace

// Replaces send() of the C library in the whole test program. Counts the rings of bells, which are single bytes.
extern "C" ssize_t send(int descriptor, const void* from, std::size_t bytes, int flags) {
  if (bytes == 1) ++rings;
  return ::syscall(SYS_sendto, descriptor, from, bytes, flags, nullptr, 0);
}

BOOST_AUTO_TEST_SUITE(watched_connections)

namespace {

using namespace troupe::test;
using caf::io::receive_policy;

void be_quiet_for_long() {
  const auto long_quiet = std::chrono::steady_clock::now() + 2 * troupe::network::watched_connections::watched_for;
  while (std::chrono::steady_clock::now() < long_quiet) std::this_thread::yield();
}

/// Two brokers of this process, each of an actor system of its own, and a connection between them. The called one answers five
/// bytes with these five bytes.
class two_brokers {
 public:
  two_brokers() {
    called_.run([this](caf::io::broker*) {
      called_.on_data = [this](caf::io::broker* self, const std::string& bytes) { write_in(self, called_.handle, bytes); };
    });
  }

  /// Brings the connection to shared memory. Waits for the end of connections of earlier cases.
  void begin() {
    for (int round = 0; round < 30; ++round) BOOST_TEST(answer_to("first") == "first");
    BOOST_TEST(becomes_true([] { return channels_of_this_process() == 2; }, long_enough));
  }
  std::string answer_to(const std::string& five_bytes) {
    inbox answer(five_bytes.size());
    caller_->on_data = [&](const std::string& bytes) { answer.add(bytes); };
    caller_->write(five_bytes);
    auto all = answer.all();
    caller_->settle();  // nothing uses `answer` any more
    return all;
  }
  void end_caller() { caller_.reset(); }
  void in_called(const std::function<void(caf::io::broker*)>& work) { called_.run(work); }
  void close_called() {
    called_.run([this](caf::io::broker* self) { self->close(called_.handle); });
  }
  bool is_closed() { return called_.is_closed(); }

 private:
  std::optional<calling_broker> caller_{troupe::settings()};
  broker_connection called_{receive_policy::exactly(5), {}, [this](std::uint16_t port) {
                              caller_->call(port);
                              return -1;
                            }};
};

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
  be_quiet_for_long();
  over.to.close_client();
  BOOST_TEST(over.is_closed());
}

// WC-3
BOOST_AUTO_TEST_CASE(two_ends_of_one_process_wake_each_other_without_a_system_call) {
  two_brokers both;
  both.begin();
  const int before = rings;
  for (int round = 0; round < 3; ++round) {
    BOOST_TEST(both.answer_to("quick") == "quick");
    be_quiet_for_long();
    BOOST_TEST(both.answer_to("later") == "later");
  }
  BOOST_TEST(rings == before);
}

// WC-3
BOOST_AUTO_TEST_CASE(the_last_end_of_one_process_learns_that_the_other_has_left) {
  two_brokers both;
  both.begin();
  both.end_caller();
  BOOST_TEST(both.is_closed());
  BOOST_TEST(becomes_true([] { return channels_of_this_process() == 0; }, long_enough));
}

// WC-2: a post that posts itself keeps the leader from sleeping.
BOOST_AUTO_TEST_CASE(two_ends_of_one_process_are_let_go_though_the_leader_does_not_sleep) {
  std::atomic<bool> goes_on{true};
  std::promise<void> over;
  std::function<void()> post_again;
  two_brokers both;
  both.begin();
  both.in_called([&](caf::io::broker* self) {
    post_again = [&, self] {
      if (!goes_on) return over.set_value();
      caf::anon_send(caf::actor_cast<caf::actor>(self), posted_work{&post_again});
    };
    post_again();
  });
  both.close_called();
  BOOST_TEST(becomes_true([] { return channels_of_this_process() == 0; }, long_enough));
  goes_on = false;
  BOOST_REQUIRE((over.get_future().wait_for(long_enough) == std::future_status::ready));
}

BOOST_AUTO_TEST_SUITE_END()
