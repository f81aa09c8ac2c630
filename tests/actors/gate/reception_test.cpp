// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/gate/reception.hpp>

#include <fcntl.h>
#include <malloc.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <troupe/actors/gate/credentials.hpp>
#include <troupe/actors/support/machine_address.hpp>

#include "actors/certificates/own_cluster.hpp"
#include "actors/loopback_nodes.hpp"
#include "actors/network/loopback_connection.hpp"
#include "support/contains.hpp"

BOOST_AUTO_TEST_SUITE(receptions)

namespace {

using namespace std::chrono_literals;
using troupe::gate::credentials;
using troupe::gate::prove_within;
using troupe::gate::proven_connection;
using troupe::gate::reception;
using troupe::gate::refusal;
using troupe::gate::tls_session;
using troupe::support::address_with_port;
using troupe::support::owned_descriptor;
using troupe::test::becomes_true;
using troupe::test::contains;
using troupe::test::loopback_connection;
using troupe::test::own_cluster;
using end_of = troupe::gate::end;

/// A reception, and what it says.
struct hall {
  own_cluster mine;
  std::shared_ptr<credentials> own = std::make_shared<credentials>(mine.kit("here"));
  std::shared_ptr<credentials> guest = std::make_shared<credentials>(mine.kit("guest"));
  std::mutex mutex;
  std::condition_variable said;
  std::vector<std::pair<proven_connection, std::uint64_t>> proven;
  std::vector<refusal> refused;
  std::function<void(std::size_t)> at_refusal = [](std::size_t) {};  // with the number of the refusal, before it is kept
  reception at{own,
               {[this](proven_connection one, std::uint64_t listener) {
                  std::lock_guard lock(mutex);
                  proven.emplace_back(std::move(one), listener);
                  said.notify_all();
                },
                [this](const refusal& why) {
                  at_refusal(refused.size() + 1);
                  std::lock_guard lock(mutex);
                  refused.push_back(why);
                  said.notify_all();
                }}};

  /// Connects, and hands the called end to the reception.
  owned_descriptor enter(std::uint64_t listener, const char* from = nullptr) {
    loopback_connection both(AF_INET, from);
    for (const auto* each : {&both.caller, &both.called}) ::fcntl(each->get(), F_SETFL, O_NONBLOCK);
    at.admit(std::move(both.called), listener);
    return std::move(both.caller);
  }

  bool comes(const std::function<bool()>& what) {
    std::unique_lock lock(mutex);
    return said.wait_for(lock, 20s, what);
  }
};

/// Whether the other end closes the connection. Returns the bytes that came first.
std::optional<std::string> bytes_until_end(const owned_descriptor& socket) {
  ::fcntl(socket.get(), F_SETFL, 0);
  const timeval patience{20, 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  std::string all;
  char bytes[512];
  for (;;) {
    const auto came = ::recv(socket.get(), bytes, sizeof bytes, 0);
    if (came < 0 && errno == EAGAIN) return std::nullopt;
    if (came <= 0) return all;
    all.append(bytes, static_cast<std::size_t>(came));
  }
}

}  // namespace

BOOST_FIXTURE_TEST_CASE(who_proves_himself_is_handed_over_with_the_number_of_the_door, hall) {  // RN-1
  for (const std::uint64_t listener : {7U, 9U}) {
    const auto caller = enter(listener);
    tls_session session(guest, caller.get(), end_of::calling, "here");
    BOOST_TEST(!prove_within(session, caller.get(), 5s).has_value());
    BOOST_TEST_REQUIRE(comes([&] { return !proven.empty(); }));
    BOOST_TEST(proven[0].second == listener);
    BOOST_TEST(proven[0].first.session->other().node == "guest");
    BOOST_TEST(proven[0].first.session->write("hello", 5, false) == 5);
    std::string bytes(5, '\0');
    for (ssize_t came = -1; came < 0;) came = session.peek({bytes.data(), bytes.size()});
    BOOST_TEST(bytes == "hello");
    proven.clear();
  }
  BOOST_TEST(refused.empty());
}

BOOST_FIXTURE_TEST_CASE(who_says_nothing_is_told_what_is_expected, hall) {  // RN-1
  const auto caller = enter(1);
  const auto said_first = bytes_until_end(caller);
  BOOST_TEST_REQUIRE(said_first.has_value());
  BOOST_TEST_REQUIRE(!said_first->empty());
  BOOST_TEST((*said_first)[0] == 0x15);  // an alert of TLS
  BOOST_TEST(comes([&] { return refused.size() == 1; }));
  BOOST_TEST(contains(refused[0].why, "has not begun the handshake of TLS within 2 s"), refused[0].why);
}

BOOST_FIXTURE_TEST_CASE(who_stops_in_the_middle_is_closed, hall) {  // RN-1
  const auto caller = enter(1);
  BOOST_TEST(::send(caller.get(), "\x16\x03\x01\x00\xff", 5, 0) == 5);
  BOOST_TEST(bytes_until_end(caller).has_value());
  BOOST_TEST(comes([&] { return refused.size() == 1; }));
  BOOST_TEST(contains(refused[0].why, "was not over after 5 s"), refused[0].why);
}

BOOST_FIXTURE_TEST_CASE(who_sends_something_else_is_closed_at_once_without_a_byte, hall) {  // RN-1, RN-5
  using namespace std::string_literals;
  for (const auto& bytes : {std::string(40, '\0'), "G"s, "\x16\x02"s, "\x16\x03\x01\x00\xff\x02"s}) {
    const auto caller = enter(1);
    BOOST_TEST(::send(caller.get(), bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
    BOOST_TEST(bytes_until_end(caller).value_or("it goes on") == "");
    BOOST_TEST(comes([&] { return refused.size() == 1; }));
    BOOST_TEST(contains(refused[0].why, "does not speak TLS 1.3"), refused[0].why);
    refused.clear();
  }
}

BOOST_FIXTURE_TEST_CASE(a_handshake_may_come_byte_by_byte, hall) {  // RN-5
  const auto caller = enter(1);
  loopback_connection relayed(AF_INET);
  ::fcntl(relayed.caller.get(), F_SETFL, O_NONBLOCK);
  tls_session session(guest, relayed.caller.get(), end_of::calling, "here");
  session.shake_hands();
  std::string hello(4096, '\0');
  const auto came = ::recv(relayed.called.get(), hello.data(), hello.size(), 0);
  BOOST_TEST_REQUIRE(came > 6);
  for (ssize_t i = 0; i < came; ++i) BOOST_TEST(::send(caller.get(), &hello[static_cast<std::size_t>(i)], 1, 0) == 1);
  char answer = 0;
  ::fcntl(caller.get(), F_SETFL, 0);
  BOOST_TEST(::recv(caller.get(), &answer, 1, 0) == 1);
  BOOST_TEST(answer == 0x16);  // a record of the handshake
}

BOOST_FIXTURE_TEST_CASE(who_leaves_is_not_told_of, hall) {  // RN-1
  { const auto caller = enter(1); }
  const auto other = enter(2);
  BOOST_TEST(::send(other.get(), "no TLS at all", 13, 0) == 13);
  BOOST_TEST(comes([&] { return !refused.empty(); }));
  BOOST_TEST(contains(refused[0].why, "TLS 1.3"), refused[0].why);
  BOOST_TEST(refused.size() == 1U);
}

BOOST_FIXTURE_TEST_CASE(too_many_at_once_cost_the_oldest_its_connection, hall) {  // RN-2
  std::vector<owned_descriptor> callers;
  for (std::size_t i = 0; i <= reception::most; ++i) callers.push_back(enter(i));
  BOOST_TEST(comes([&] { return !refused.empty(); }));
  BOOST_TEST(contains(refused[0].why, "256 connections wait at the gate"), refused[0].why);
  BOOST_TEST(bytes_until_end(callers.front()).has_value());
  // Nobody who stalls keeps out who comes to prove himself.
  const auto caller = enter(1000);
  tls_session session(guest, caller.get(), end_of::calling);
  BOOST_TEST(!prove_within(session, caller.get(), 5s).has_value());
  BOOST_TEST(comes([&] { return proven.size() == 1; }));
}

BOOST_FIXTURE_TEST_CASE(who_has_left_is_refused_with_its_address, hall) {  // RN-1
  std::vector<owned_descriptor> callers;
  for (std::size_t i = 0; i < reception::most; ++i) callers.push_back(enter(i));
  BOOST_TEST_REQUIRE(becomes_true([&] { return at.open_handshakes() == reception::most; }, 1s));
  sockaddr_storage third{};
  socklen_t size = sizeof third;
  BOOST_REQUIRE(::getsockname(callers[2].get(), reinterpret_cast<sockaddr*>(&third), &size) == 0);
  std::vector<owned_descriptor> late;
  at_refusal = [&](std::size_t number) {
    // One more caller made the first leave. Two more come at once: the second leaves, then the third, whose caller is gone by then.
    if (number == 1)
      for (std::uint64_t listener : {2000U, 2001U}) late.push_back(enter(listener));
    const linger reset{1, 0};
    if (number == 2) ::setsockopt(callers[2].get(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    if (number == 2) callers[2] = {};
  };
  const auto one_more = enter(1000);
  BOOST_TEST_REQUIRE(comes([&] { return refused.size() >= 3; }));
  BOOST_TEST(contains(refused[2].why, "the program at " + address_with_port(third) + ": more than"), refused[2].why);
}

BOOST_FIXTURE_TEST_CASE(who_stops_in_the_middle_keeps_nobody_out, hall) {  // RN-2
  std::vector<owned_descriptor> callers;
  for (std::size_t i = 0; i < reception::most; ++i) {
    callers.push_back(enter(i));
    BOOST_TEST(::send(callers.back().get(), "\x16\x03\x01\x00\xff", 5, 0) == 5);
  }
  BOOST_TEST(becomes_true([&] { return at.open_handshakes() == reception::most; }, 1s));
  const auto caller = enter(1000);
  BOOST_TEST(comes([&] { return !refused.empty(); }));
  tls_session session(guest, caller.get(), end_of::calling);
  BOOST_TEST(!prove_within(session, caller.get(), 5s).has_value());
  BOOST_TEST(comes([&] { return proven.size() == 1; }));
}

BOOST_FIXTURE_TEST_CASE(a_flood_from_one_host_costs_no_other_host_its_connection, hall) {  // RN-2
  const auto caller = enter(1000, "127.0.0.2");
  std::vector<owned_descriptor> flood;
  for (std::size_t i = 0; i < 3 * reception::most; ++i) {
    flood.push_back(enter(i));
    if (i % 2 == 0) ::send(flood.back().get(), "\x16\x03\x01\x00\xff", 5, MSG_NOSIGNAL);
  }
  BOOST_TEST(comes([&] { return refused.size() > reception::most; }));
  tls_session session(guest, caller.get(), end_of::calling);
  BOOST_TEST(!prove_within(session, caller.get(), 5s).has_value());
  BOOST_TEST_REQUIRE(comes([&] { return proven.size() == 1; }));
  BOOST_TEST(proven[0].second == 1000U);
}

BOOST_FIXTURE_TEST_CASE(who_says_nothing_costs_no_memory_of_TLS, hall) {  // RN-3
  std::vector<owned_descriptor> callers;
  for (int i = 0; i < 20; ++i) callers.push_back(enter(1));  // what grows once has grown
  BOOST_TEST(comes([&] { return refused.size() == 20; }));
  const auto before = ::mallinfo2().uordblks;
  for (int i = 0; i < 200; ++i) callers.push_back(enter(1));
  BOOST_TEST(becomes_true([&] { return at.open_handshakes() == 200; }, 1s));
  BOOST_TEST(::mallinfo2().uordblks < before + 200 * std::size_t{1024});
}

BOOST_AUTO_TEST_CASE(a_reception_ends_while_many_wait) {  // RN-4
  for (int i = 0; i < 20; ++i) {
    hall here;
    std::vector<owned_descriptor> callers;
    for (int each = 0; each < 10; ++each) callers.push_back(here.enter(1));
    if (i % 2 == 0) ::send(callers[3].get(), "\x16\x03\x01", 3, 0);
  }
}

BOOST_AUTO_TEST_SUITE_END()
