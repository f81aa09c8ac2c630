// SPDX-License-Identifier: BSD-3-Clause
// Connections that stay with TCP. tcp_scribe_memory_test.cpp has the tests of connections that use shared memory.
#include <troupe/actors/network/tcp_scribe.hpp>

#include <linux/net_tstamp.h>
#include <malloc.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <future>
#include <new>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <troupe/actors/network/message_head.hpp>
#include <troupe/actors/network/write_scheduler.hpp>
#include <troupe/actors/support/recent_peak.hpp>
#include <troupe/troupe.hpp>

#include "actors/network/broker_connection.hpp"

namespace {

std::atomic<int> unreadable{-1};                 // readv() of this descriptor fails with ENOMEM
std::atomic<std::size_t> most_memory{SIZE_MAX};  // there is no memory for more bytes at once

}  // namespace

// Replaces readv() of the C library in the whole test program.
extern "C" ssize_t readv(int descriptor, const iovec* to, int count) {
  if (descriptor != unreadable) return ::syscall(SYS_readv, descriptor, to, count);
  errno = ENOMEM;
  return -1;
}

// These replace the functions of the C++ library in the whole test program.
void* operator new(std::size_t bytes) {
  auto* const result = bytes <= most_memory ? std::malloc(bytes) : nullptr;
  if (result == nullptr) throw std::bad_alloc{};
  return result;
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return std::malloc(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

BOOST_AUTO_TEST_SUITE(tcp_scribe)

namespace {

using namespace troupe::test;
using caf::io::receive_policy;

constexpr std::size_t large_chunk = std::size_t{16} << 20;
constexpr std::size_t many_chunks = 3 * troupe::support::recent_peak::window;

/// The bytes that the C library has given to this process and that were not freed.
std::size_t memory_in_use() {
  const auto all = ::mallinfo2();
  return all.uordblks + all.hblkhd;
}

}  // namespace

// The sizes of the chunks are close to the sizes of the buffers. The bytes come in one write, or in writes of other sizes.
BOOST_AUTO_TEST_CASE(the_broker_gets_chunks_of_the_size_that_it_wants) {
  const std::vector<std::size_t> sizes{3, 1, 16'381, 72, 16'384, 5, 100'000, 16'385, 1, 40'000, 7};
  std::size_t total = 0;
  for (const auto each : sizes) total += each;
  const auto sent = some_bytes(total);
  for (const std::size_t cut : {total, std::size_t{1'000}, std::size_t{16'384}, std::size_t{17}}) {
    broker_connection to(receive_policy::exactly(sizes[0]));
    inbox got(total);
    std::vector<std::size_t> came;
    to.on_data = [&](caf::io::broker* self, const std::string& bytes) {
      came.push_back(bytes.size());
      if (came.size() < sizes.size()) self->configure_read(to.handle, receive_policy::exactly(sizes[came.size()]));
      got.add(bytes);
    };
    for (std::size_t at = 0; at < total; at += cut) to.send(sent.substr(at, cut));
    BOOST_TEST((got.all() == sent));
    BOOST_TEST(came == sizes, boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(the_broker_gets_as_much_as_it_wants_at_most_or_at_least) {
  const auto sent = some_bytes(100'000);
  for (const auto& wanted : {receive_policy::at_most(300), receive_policy::at_least(300)}) {
    broker_connection to(wanted);
    inbox got(wanted.first == caf::io::receive_policy_flag::at_most ? sent.size() : sent.size() - 299);
    bool fits = true;
    to.on_data = [&](caf::io::broker*, const std::string& bytes) {
      fits = fits && (wanted.first == caf::io::receive_policy_flag::at_most ? bytes.size() <= 300 : bytes.size() >= 300);
      got.add(bytes);
    };
    to.send(sent);
    const auto all = got.all();
    BOOST_TEST((all == sent.substr(0, all.size())));
    BOOST_TEST(fits);
  }
}

// TS-2: no event comes for bytes that were read before the halt.
BOOST_AUTO_TEST_CASE(what_was_read_ahead_waits_for_a_broker_that_was_halted) {
  constexpr int chunks = 5;
  broker_connection to(receive_policy::exactly(10));
  std::promise<void> passive[chunks];
  std::string got;
  int pauses = 0;
  to.on_data = [&](caf::io::broker*, const std::string& bytes) { got += bytes; };
  to.on_passive = [&](caf::io::broker*) { passive[pauses++].set_value(); };
  to.run([&](caf::io::broker* self) { self->trigger(to.handle, 1); });
  const auto sent = some_bytes(10 * chunks);
  to.send(sent);
  for (int i = 0; i < chunks; ++i) {
    BOOST_REQUIRE((passive[i].get_future().wait_for(long_enough) == std::future_status::ready));
    to.run([&](caf::io::broker* self) {
      BOOST_TEST((got == sent.substr(0, 10 * static_cast<std::size_t>(i + 1))));
      self->trigger(to.handle, 1);
    });
  }
}

// TS-2: the broker halts while it handles its first chunk.
BOOST_AUTO_TEST_CASE(a_broker_that_halts_gets_nothing_before_it_goes_on) {
  broker_connection to(receive_policy::exactly(10));
  std::promise<void> first;
  inbox got(50);
  int chunks = 0;
  to.on_data = [&](caf::io::broker* self, const std::string& bytes) {
    got.add(bytes);
    if (++chunks > 1) return;
    self->halt(to.handle);
    first.set_value();
  };
  const auto sent = some_bytes(50);
  to.send(sent);
  BOOST_REQUIRE((first.get_future().wait_for(long_enough) == std::future_status::ready));
  for (int i = 0; i < 10; ++i) to.run([&](caf::io::broker*) { BOOST_TEST(chunks == 1); });
  to.run([&](caf::io::broker* self) { self->trigger(to.handle); });
  BOOST_TEST((got.all() == sent));
}

// TS-2
BOOST_AUTO_TEST_CASE(a_broker_that_was_halted_stays_halted_when_it_configures_its_reading) {
  broker_connection to(receive_policy::exactly(10));
  inbox got(10);
  to.on_data = [&](caf::io::broker*, const std::string& bytes) { got.add(bytes); };
  to.run([&](caf::io::broker* self) {
    self->halt(to.handle);
    self->configure_read(to.handle, receive_policy::exactly(5));
  });
  to.send("1234567890");
  for (int i = 0; i < 10; ++i) to.run([&](caf::io::broker*) { BOOST_TEST(!got.has_more_than(0)); });
  to.run([&](caf::io::broker* self) { self->trigger(to.handle); });
  BOOST_TEST(got.all() == "1234567890");
}

// TS-1, TS-4: the broker writes much more than the system takes at once, and does so twice. The connection ends after the last
// byte.
BOOST_AUTO_TEST_CASE(what_the_system_does_not_take_leaves_later_and_before_the_end) {
  broker_connection to(receive_policy::exactly(1));
  const auto sent = some_bytes(std::size_t{24} << 20);
  const auto send_all = [&](caf::io::broker* self) {
    for (std::size_t at = 0; at < sent.size(); at += sent.size() / 8) {
      self->write(to.handle, sent.size() / 8, sent.data() + at);
      self->flush(to.handle);
    }
  };
  to.run(send_all);
  to.settle();  // afterwards the system takes no more bytes
  BOOST_TEST((to.receive(sent.size()) == sent));
  to.run(send_all);
  to.run([&](caf::io::broker* self) {
    write_in(self, to.handle, "end");
    self->close(to.handle);
  });
  BOOST_TEST((to.receive(sent.size() + 100) == sent + "end"));
}

// TS-4: the broker lets the scribe go while flushed bytes have yet to leave.
BOOST_AUTO_TEST_CASE(bytes_of_a_connection_that_is_closed_at_once_leave) {
  broker_connection to(receive_policy::exactly(1));
  to.run([&](caf::io::broker* self) {
    write_in(self, to.handle, "end");
    self->close(to.handle);
  });
  BOOST_TEST(to.receive(100) == "end");
}

// TS-7
BOOST_AUTO_TEST_CASE(memory_of_a_large_chunk_is_freed_after_many_small_ones) {
  broker_connection to(receive_policy::exactly(1));
  inbox got(1 + large_chunk + many_chunks);
  to.on_data = [&](caf::io::broker* self, const std::string& bytes) {
    self->configure_read(to.handle, receive_policy::exactly(bytes.size() == 1 && !got.has_more_than(0) ? large_chunk : 1));
    got.add(bytes);
  };
  const auto before = memory_in_use();
  to.send(some_bytes(1 + large_chunk + many_chunks));
  BOOST_TEST((got.all() == some_bytes(1 + large_chunk + many_chunks)));
  to.run([&](caf::io::broker*) { got.forget(); });
  BOOST_TEST(memory_in_use() < before + large_chunk / 4);
}

// TS-7
BOOST_AUTO_TEST_CASE(memory_of_what_left_is_freed_after_many_small_messages) {
  broker_connection to(receive_policy::at_least(1));
  const auto before = memory_in_use();
  {
    auto large = std::async(std::launch::async, [&] { return to.receive(large_chunk); });
    to.write(some_bytes(large_chunk));
    BOOST_TEST((large.get() == some_bytes(large_chunk)));
  }
  for (std::size_t i = 0; i < many_chunks; ++i) {
    to.write("x");
    BOOST_REQUIRE(to.receive(1) == "x");
  }
  BOOST_TEST(memory_in_use() < before + large_chunk / 4);
}

// TS-3: the other end closes while the broker writes.
BOOST_AUTO_TEST_CASE(a_broker_is_told_once_of_a_connection_that_is_gone_and_not_while_it_writes) {
  broker_connection to(receive_policy::exactly(1));
  const linger at_once{1, 0};
  ::setsockopt(to.client, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  const auto sent = some_bytes(std::size_t{8} << 20);
  to.run([&](caf::io::broker* self) {
    to.close_client();
    for (int i = 0; i < 4; ++i) {
      self->write(to.handle, sent.size(), sent.data());
      self->flush(to.handle);
      BOOST_TEST(to.closed == 0);
    }
  });
  BOOST_TEST(to.is_closed());
  to.run([&](caf::io::broker* self) {
    BOOST_TEST(to.closed == 1);
    BOOST_TEST(self->num_connections() == 0u);
  });
}

// TS-3
BOOST_AUTO_TEST_CASE(a_connection_that_can_not_be_read_for_want_of_memory_ends) {
  broker_connection to(receive_policy::exactly(1));
  to.on_data = [](caf::io::broker*, const std::string&) {};
  unreadable = static_cast<int>(to.handle.id());
  to.send("x");
  BOOST_TEST(to.is_closed());
  unreadable = -1;
}

// TS-3: the socket has no bytes and no space, and reports an error: a time stamp that the scribe never fetches.
BOOST_AUTO_TEST_CASE(a_halted_broker_that_writes_is_told_of_an_error_of_its_socket) {
  broker_connection to(receive_policy::exactly(1), without_shared_memory());
  to.run([&](caf::io::broker* self) {
    const int stamps = SOF_TIMESTAMPING_TX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE;
    BOOST_TEST(::setsockopt(static_cast<int>(to.handle.id()), SOL_SOCKET, SO_TIMESTAMPING, &stamps, sizeof stamps) == 0);
    self->halt(to.handle);
    write_in(self, to.handle, "stamped");
  });
  BOOST_TEST(to.receive(7) == "stamped");
  to.write(some_bytes(std::size_t{24} << 20));
  BOOST_TEST(to.is_closed());
}

// TS-8
BOOST_AUTO_TEST_CASE(a_connection_with_a_wrong_fragment_is_over) {
  troupe::node here(loopback_settings("here"));
  const int socket = called_on_loopback(here.port());
  std::string fragment(troupe::network::message_head::bytes, '\0');
  troupe::network::message_head{troupe::network::message_head::fragment, 0, 1 << 20, 0, 0}.write(fragment.data());
  BOOST_REQUIRE(::send(socket, fragment.data(), fragment.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(fragment.size()));
  std::string came(1'000, '\0');
  ssize_t bytes = 1;
  while (bytes > 0) bytes = ::recv(socket, came.data(), came.size(), 0);  // the handshake, then the end
  BOOST_TEST(bytes == 0);
  ::close(socket);
}

// TS-11
BOOST_AUTO_TEST_CASE(a_connection_ends_for_whose_fragments_there_is_no_memory) {
  constexpr std::size_t fragment_bytes = troupe::network::write_scheduler::fragment_bytes;
  troupe::node here(loopback_settings("here"));
  const int socket = called_on_loopback(here.port());
  std::string fragment(troupe::network::message_head::bytes + fragment_bytes, '\0');
  troupe::network::message_head{troupe::network::message_head::fragment, 0, fragment_bytes, 0, 0}.write(fragment.data());
  // A connection that has ended with a closed window takes no more bytes, and the system tells the sender after minutes.
  const timeval patience{1, 0};
  BOOST_TEST_REQUIRE(::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) == 0);
  const auto before = here.status().connections_refused;
  most_memory = std::size_t{4} << 20;
  for (int i = 0; i < 64 && ::send(socket, fragment.data(), fragment.size(), MSG_NOSIGNAL) > 0; ++i) {
  }
  const bool refused = becomes_true([&] { return here.status().connections_refused == before + 1; }, long_enough);
  most_memory = SIZE_MAX;
  BOOST_TEST(refused);
  ::close(socket);
}

BOOST_AUTO_TEST_SUITE_END()
