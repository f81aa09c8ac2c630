// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/network/memory_channel.hpp>

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <array>
#include <functional>
#include <string>

#include <boost/test/unit_test.hpp>

#include "actors/network/loopback_connection.hpp"

namespace {

std::function<void(int)> after_fstat;  // runs after each fstat(), in place of another process

}  // namespace

// Replaces fstat() of the C library in the whole test program.
extern "C" int fstat(int descriptor, struct stat* found) noexcept {
  const int result = ::fstatat(descriptor, "", found, AT_EMPTY_PATH);
  if (after_fstat) after_fstat(descriptor);
  return result;
}

namespace {

using troupe::network::channel_listener;
using troupe::network::memory_channel;
using troupe::support::owned_descriptor;
using troupe::test::loopback_connection;

std::string carried(memory_channel& from, memory_channel& to, const std::string& text) {
  from.outgoing.write(text.data(), text.size());
  std::string result(100, '\0');
  result.resize(to.incoming.read(result.data(), result.size()).value());
  return result;
}

void check_meeting(const loopback_connection& over) {
  auto listener = channel_listener::open(over.caller.get());
  BOOST_REQUIRE(listener.has_value());
  BOOST_TEST(!listener->answer().channel);
  const auto called = channel_listener::connect(over.called.get());
  BOOST_REQUIRE(called.channel);
  BOOST_TEST(!called.channel->is_joined());
  const auto caller = listener->answer();
  BOOST_REQUIRE(caller.channel);
  BOOST_TEST(called.channel->is_joined());
  BOOST_TEST(carried(*called.channel, *caller.channel, "one way") == "one way");
  BOOST_TEST(carried(*caller.channel, *called.channel, "the other") == "the other");
  char byte = 1;
  BOOST_TEST(::send(caller.bell.get(), &byte, 1, 0) == 1);
  BOOST_TEST(::recv(called.bell.get(), &byte, 1, 0) == 1);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(memory_channels)

// LD-1
BOOST_AUTO_TEST_CASE(the_two_ends_of_a_connection_on_loopback_get_a_channel) { check_meeting(loopback_connection()); }

BOOST_AUTO_TEST_CASE(the_two_ends_of_an_ipv6_connection_get_a_channel) {
  const owned_descriptor probe(::socket(AF_INET6, SOCK_STREAM, 0));
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_addr = in6addr_loopback;
  if (!probe || ::bind(probe.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    BOOST_TEST_MESSAGE("no IPv6 here");
    return;
  }
  check_meeting(loopback_connection(AF_INET6));
}

// LD-2
BOOST_AUTO_TEST_CASE(where_there_is_no_listener_there_is_no_channel) {
  const loopback_connection over;
  BOOST_TEST(!channel_listener::connect(over.called.get()).channel);
  { const auto listener = channel_listener::open(over.caller.get()); }
  BOOST_TEST(!channel_listener::connect(over.called.get()).channel);
  const loopback_connection another;
  const auto listener = channel_listener::open(another.caller.get());
  BOOST_TEST(!channel_listener::connect(over.called.get()).channel);
}

// LD-1
BOOST_AUTO_TEST_CASE(what_is_not_on_loopback_has_no_door) {
  std::array<int, 2> pair{};
  BOOST_REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair.data()) == 0);
  const owned_descriptor one(pair[0]);
  const owned_descriptor other(pair[1]);
  BOOST_TEST(!channel_listener::open(one.get()).has_value());
  BOOST_TEST(!channel_listener::connect(other.get()).channel);
}

// ML-1
BOOST_AUTO_TEST_CASE(memory_of_another_size_or_that_could_shrink_is_not_mapped) {
  const auto right = memory_channel::make_memory();
  BOOST_TEST_REQUIRE(memory_channel::map(right, memory_channel::end::joined));
  struct stat found {};
  BOOST_REQUIRE(::fstat(right.get(), &found) == 0);
  const auto map = [](off_t size, int seals) {
    const owned_descriptor memory(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    BOOST_REQUIRE(::ftruncate(memory.get(), size) == 0);
    if (seals != 0) BOOST_REQUIRE(::fcntl(memory.get(), F_ADD_SEALS, seals) == 0);
    return memory_channel::map(memory, memory_channel::end::joined) != nullptr;
  };
  const int all = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  BOOST_TEST(map(found.st_size, all));
  BOOST_TEST(!map(found.st_size - 1, all));
  BOOST_TEST(!map(found.st_size + 4096, all));
  BOOST_TEST(!map(found.st_size, 0));
  BOOST_TEST(!map(found.st_size, F_SEAL_GROW));
  BOOST_TEST(!map(found.st_size, F_SEAL_SHRINK));
  BOOST_TEST(!memory_channel::map(owned_descriptor(), memory_channel::end::joined));
}

// ML-1
BOOST_AUTO_TEST_CASE(memory_that_shrinks_while_it_is_checked_is_not_mapped) {
  const auto right = memory_channel::make_memory();
  struct stat found {};
  BOOST_REQUIRE(::fstat(right.get(), &found) == 0);
  const owned_descriptor memory(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  BOOST_REQUIRE(::ftruncate(memory.get(), found.st_size) == 0);
  after_fstat = [](int descriptor) {
    BOOST_TEST(::ftruncate(descriptor, 4096) == 0);
    BOOST_TEST(::fcntl(descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0);
  };
  const bool is_mapped = memory_channel::map(memory, memory_channel::end::joined) != nullptr;
  after_fstat = nullptr;
  BOOST_TEST(!is_mapped);
}

BOOST_AUTO_TEST_CASE(an_end_that_joins_leaves_what_the_other_end_has_set) {
  const auto memory = memory_channel::make_memory();
  const auto opened = memory_channel::map(memory, memory_channel::end::opened);
  BOOST_REQUIRE(opened);
  BOOST_TEST(!opened->incoming.has_begun_after(0));
  opened->outgoing.begin(7);
  const std::string text = "early";
  BOOST_TEST(opened->outgoing.write(text.data(), text.size()).value() == text.size());
  const auto joined = memory_channel::map(memory, memory_channel::end::joined);
  BOOST_REQUIRE(joined);
  BOOST_TEST(opened->is_joined());
  BOOST_TEST(joined->incoming.has_begun_after(7));
  BOOST_TEST(carried(*opened, *joined, ", late") == "early, late");
  BOOST_TEST(joined->outgoing.has_to_wake_reader());  // a reader counts as asleep until its first wake()
}

BOOST_AUTO_TEST_SUITE_END()
