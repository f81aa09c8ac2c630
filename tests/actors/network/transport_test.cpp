// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/network/transport.hpp>

#include <fcntl.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cerrno>
#include <memory>
#include <string>

#include <boost/test/unit_test.hpp>

#include "actors/certificates/own_cluster.hpp"
#include "actors/gate/tls_pair.hpp"
#include "actors/network/loopback_connection.hpp"

BOOST_AUTO_TEST_SUITE(transports)

namespace {

using troupe::gate::tls_session;
using troupe::network::connection_channel;
using troupe::network::transport;
using troupe::test::end_of;
using troupe::test::loopback_connection;
using troupe::test::own_cluster;

/// Both ends of a connection.
struct two_ends {
  loopback_connection over;
  std::unique_ptr<transport> caller;
  std::unique_ptr<transport> called;

  explicit two_ends(bool shares_memory, const own_cluster* secured = nullptr) {
    for (const auto* each : {&over.caller, &over.called}) ::fcntl(each->get(), F_SETFL, O_NONBLOCK);
    caller =
      std::make_unique<transport>(over.caller.get(), session(secured, over.caller.get(), end_of::calling), shares_memory);
    called = std::make_unique<transport>(over.called.get(), session(secured, over.called.get(), end_of::called), shares_memory);
  }

  static std::unique_ptr<tls_session> session(const own_cluster* of, int socket, end_of which) {
    if (of == nullptr) return nullptr;
    return std::make_unique<tls_session>(troupe::test::of(of->kit(which == end_of::calling ? "a" : "b")), socket, which, "b");
  }

  void share() {
    caller->memory().expect(over.caller.get());
    BOOST_REQUIRE(called->memory().search(over.called.get()).has_value());
    BOOST_REQUIRE(caller->memory().search(over.caller.get()).has_value());
  }
};

/// What the wire brings.
std::string read_from(transport& end, std::size_t most = 1000) {
  std::string result(most, '\0');
  const auto came = end.read({result.data(), most / 2}, {result.data() + most / 2, most - most / 2});
  if (came < 0) BOOST_TEST(errno == EAGAIN);
  result.resize(came < 0 ? 0 : static_cast<std::size_t>(came));
  return result;
}

std::string read_memory_of(transport& end, std::size_t most = 1000) {
  std::string result(most, '\0');
  result.resize(end.read_memory({result.data(), most}));
  return result;
}

void write_to(transport& end, const std::string& bytes) {
  BOOST_REQUIRE(end.write(bytes.data(), bytes.size(), false) == static_cast<ssize_t>(bytes.size()));
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_connection_without_tls_is_open_at_once) {
  const two_ends ends(false);
  BOOST_TEST((ends.caller->now() == transport::state::open));
  BOOST_TEST(ends.caller->secured() == nullptr);
  BOOST_TEST(read_from(*ends.called) == "");
  write_to(*ends.caller, "hello");
  BOOST_TEST(read_from(*ends.called) == "hello");
  BOOST_TEST(!ends.caller->wire().has_unsent());
  BOOST_TEST(!ends.called->wire().has_unread());
}

// The kernel of this machine may have chosen a pacing way of congestion control for all connections.
BOOST_AUTO_TEST_CASE(a_connection_over_loopback_is_not_paced) {  // TP-3
  const two_ends ends(false);
  for (const auto* each : {&ends.over.caller, &ends.over.called}) {
    std::string name(16, '\0');
    socklen_t bytes = name.size();
    BOOST_REQUIRE(::getsockopt(each->get(), IPPROTO_TCP, TCP_CONGESTION, name.data(), &bytes) == 0);
    BOOST_TEST(name.c_str() == std::string("reno"));
  }
}

// TP-2: a direction moves to memory between two writes. What is in memory waits for what the wire has not brought yet.
BOOST_AUTO_TEST_CASE(bytes_of_the_wire_come_before_bytes_in_memory) {
  two_ends ends(true);
  write_to(*ends.caller, "first, ");
  ends.share();
  write_to(*ends.caller, "later!");
  BOOST_TEST(ends.caller->memory().writes());
  BOOST_TEST(read_memory_of(*ends.called) == "");
  BOOST_TEST(read_from(*ends.called, 3) == "fir");
  BOOST_TEST(read_memory_of(*ends.called) == "");
  BOOST_TEST(read_from(*ends.called) == "st, ");
  BOOST_TEST(read_memory_of(*ends.called, 3) == "lat");
  BOOST_TEST(read_memory_of(*ends.called) == "er!");
  BOOST_TEST(read_from(*ends.called) == "");
  write_to(*ends.called, "back");
  BOOST_TEST(read_memory_of(*ends.caller) == "back");
}

// TP-4: without shared memory the wire keeps a head that says that more follows.
BOOST_AUTO_TEST_CASE(no_byte_waits_in_the_wire_for_bytes_that_may_go_by_memory) {
  for (const bool shares_memory : {false, true}) {
    const two_ends ends(shares_memory);
    BOOST_REQUIRE(ends.caller->write("head", 4, true) == 4);
    int unsent = 0;
    BOOST_REQUIRE(::ioctl(ends.over.caller.get(), SIOCOUTQNSD, &unsent) == 0);
    BOOST_TEST((unsent == 0) == shares_memory);
  }
}

// TP-1
BOOST_AUTO_TEST_CASE(no_byte_comes_or_leaves_before_both_ends_have_proven_who_they_are) {
  const own_cluster mine;
  two_ends ends(false, &mine);
  BOOST_TEST((ends.caller->now() == transport::state::proving));
  BOOST_TEST(ends.caller->write("x", 1, false) == -1);
  char any = 0;
  BOOST_TEST(ends.called->read({&any, 1}, {}) == -1);
  for (int i = 0; i < 20; ++i) {
    ends.caller->prove();
    ends.called->prove();
  }
  BOOST_TEST((ends.caller->now() == transport::state::open));
  BOOST_TEST((ends.called->now() == transport::state::open));
  BOOST_TEST(ends.called->secured()->other().node == "a");
  write_to(*ends.caller, "secret");
  BOOST_TEST(ends.caller->wire().flush());
  BOOST_TEST(read_from(*ends.called) == "secret");
}

// TP-2, with TLS: bytes in memory are counted from the bytes that the connection carries, and not from those of TLS.
BOOST_AUTO_TEST_CASE(a_connection_with_tls_goes_on_in_memory) {
  const own_cluster mine;
  two_ends ends(true, &mine);
  for (int i = 0; i < 20; ++i) {
    ends.caller->prove();
    ends.called->prove();
  }
  write_to(*ends.caller, "by TLS");
  ends.share();
  write_to(*ends.caller, "in memory");
  BOOST_TEST(read_memory_of(*ends.called) == "");
  BOOST_TEST(read_from(*ends.called) == "by TLS");
  BOOST_TEST(read_memory_of(*ends.called) == "in memory");
}

BOOST_AUTO_TEST_CASE(an_end_that_writes_no_more_still_reads) {
  const two_ends ends(false);
  ends.caller->end_writing();
  char any = 0;
  BOOST_TEST(ends.called->read({&any, 1}, {}) == 0);
  write_to(*ends.called, "last");
  BOOST_TEST(read_from(*ends.caller) == "last");
  ends.caller->end();
  BOOST_TEST(ends.caller->read({&any, 1}, {}) == 0);
}

BOOST_AUTO_TEST_SUITE_END()
