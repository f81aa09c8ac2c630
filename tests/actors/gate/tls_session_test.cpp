// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/gate/tls_session.hpp>

#include <linux/tcp.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>

#include <boost/test/unit_test.hpp>

#include <troupe/actors/gate/credentials.hpp>

#include "actors/certificates/own_cluster.hpp"
#include "actors/gate/tls_pair.hpp"
#include "support/contains.hpp"

BOOST_AUTO_TEST_SUITE(tls_sessions)

namespace {

using namespace troupe::test;
using troupe::support::owned_descriptor;

std::uint64_t bytes_received(const owned_descriptor& socket) {
  tcp_info facts{};
  socklen_t size = sizeof facts;
  BOOST_REQUIRE(::getsockopt(socket.get(), IPPROTO_TCP, TCP_INFO, &facts, &size) == 0);
  return facts.tcpi_bytes_received;
}

}  // namespace

BOOST_AUTO_TEST_CASE(both_ends_learn_who_the_other_one_is) {  // TL-1
  const own_cluster mine;
  const auto a = of(mine.kit("a"));
  const auto b = of(mine.kit("b", std::chrono::system_clock::now(), own_cluster::days(1), "reader"));
  tls_pair both(a, b);
  char byte = 1;
  BOOST_TEST(both.caller->write(&byte, 1, false) < 0);
  BOOST_TEST(both.caller->read({&byte, 1}, {}) < 0);
  BOOST_TEST(both.answering->peek({&byte, 1}) < 0);
  both.shake_hands();
  BOOST_TEST_REQUIRE((both.at_caller == progress::proven));
  BOOST_TEST_REQUIRE((both.at_called == progress::proven));
  BOOST_TEST(both.caller->other().node == "b");
  BOOST_TEST(both.caller->other().role == "reader");
  BOOST_TEST(both.answering->other().node == "a");
  BOOST_TEST(both.answering->other().cluster == "mine");
}

BOOST_AUTO_TEST_CASE(bytes_come_as_they_were_sent) {  // TL-2, TL-3
  const own_cluster mine;
  tls_pair both(of(mine.kit("a")), of(mine.kit("b")));
  both.shake_hands();
  std::mt19937 random(1);
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{16'384}, std::size_t{16'385}, std::size_t{3'000'000}}) {
    std::string sent(bytes, '\0');
    for (auto& each : sent) each = static_cast<char>(random());
    BOOST_TEST((move(*both.caller, *both.answering, sent) == sent));
    BOOST_TEST((move(*both.answering, *both.caller, sent) == sent));
  }
}

BOOST_AUTO_TEST_CASE(a_key_encrypts_a_bounded_number_of_records) {  // TL-4
  const own_cluster mine;
  tls_pair both(of(mine.kit("a")), of(mine.kit("b")));
  both.shake_hands();
  BOOST_TEST((move(*both.caller, *both.answering, "first") == "first"));
  const auto before = bytes_received(both.ends.called);
  std::string came;
  std::string sent;
  for (std::size_t record = 0; record < 3 * tls_session::most_records; ++record) {
    const char byte = static_cast<char>(record % 251);
    BOOST_TEST_REQUIRE(both.caller->write(&byte, 1, false) == 1);
    sent += byte;
    if (record % 64 == 0) came += read_some(*both.answering, 100).value_or("");
  }
  BOOST_TEST(both.caller->key_updates() == 3U);
  for (int i = 0; i < 100'000 && came.size() < sent.size(); ++i) came += read_some(*both.answering, 100).value_or("");
  BOOST_TEST((came == sent));
  constexpr std::size_t around = 5 + 1 + 16;  // what a record adds to its contents: header, type, tag
  constexpr std::size_t key_update = around + 5;
  BOOST_TEST(bytes_received(both.ends.called) - before == sent.size() * (around + 1) + 3 * key_update);
  BOOST_TEST((move(*both.caller, *both.answering, std::string(1'000'000, 'x')) == std::string(1'000'000, 'x')));
  BOOST_TEST(both.answering->key_updates() == 0U);
  BOOST_TEST((move(*both.answering, *both.caller, "answer") == "answer"));
}

BOOST_AUTO_TEST_CASE(an_alert_of_an_end_that_has_not_proven_itself_is_no_refusal) {  // TL-7
  const own_cluster mine;
  const own_cluster theirs;
  tls_pair both(of(mine.kit("a")), of(mine.kit("b")));
  BOOST_TEST((both.caller->shake_hands() == progress::wants_to_read));
  const char alert[] = {0x15, 0x03, 0x03, 0x00, 0x02, 0x02, 0x28};  // handshake failure
  BOOST_TEST(::send(both.ends.called.get(), alert, sizeof alert, 0) == static_cast<ssize_t>(sizeof alert));
  BOOST_TEST((both.caller->shake_hands() == progress::failed));
  BOOST_TEST(both.caller->problem().may_pass);
  BOOST_TEST(contains(both.caller->problem().why, "first bytes may have been lost"), both.caller->problem().why);

  tls_pair strangers(of(mine.kit("a")), of(theirs.kit("b")));
  strangers.shake_hands();
  BOOST_TEST((strangers.at_caller == progress::failed));
  BOOST_TEST(!strangers.caller->problem().may_pass);
  BOOST_TEST(contains(strangers.caller->problem().why, "is of another authority"), strangers.caller->problem().why);
}

/// Without it a node that is called could send messages in the handshake, end the connection, and be read as anybody.
BOOST_AUTO_TEST_CASE(an_end_that_cannot_finish_the_handshake_has_proven_nothing) {  // TL-1
  const own_cluster mine;
  tls_pair both(of(mine.kit("a")), of(mine.kit("b")));
  BOOST_TEST((both.caller->shake_hands() == progress::wants_to_read));
  BOOST_TEST((both.answering->shake_hands() == progress::wants_to_read));
  BOOST_TEST(::shutdown(both.ends.caller.get(), SHUT_WR) == 0);  // what the other end has sent has come
  BOOST_TEST((both.caller->shake_hands() == progress::failed));
  BOOST_TEST(!both.caller->is_proven());
  char byte = 0;
  BOOST_TEST(both.caller->read({&byte, 1}, {}) < 0);
}

BOOST_AUTO_TEST_CASE(new_keys_without_end_end_the_connection) {  // TL-2, TL-5
  const own_cluster mine;
  const auto flooding = of(mine.kit("a"));
  for (const int kind : {SSL_KEY_UPDATE_REQUESTED, SSL_KEY_UPDATE_NOT_REQUESTED}) {
    tls_pair both(of(mine.kit("unused")), of(mine.kit("b")));
    both.caller.reset();  // OpenSSL alone has this end
    troupe::gate::proving_end end{flooding, both.ends.caller.get(), end_of::calling, {}};
    const std::unique_ptr<SSL, decltype(&SSL_free)> flood(flooding->new_ssl(end), &SSL_free);
    BOOST_TEST_REQUIRE(SSL_set_fd(flood.get(), both.ends.caller.get()) == 1);
    for (int i = 0; i < 20; ++i) {
      SSL_do_handshake(flood.get());
      both.answering->shake_hands();
    }
    BOOST_TEST_REQUIRE(both.answering->is_proven());
    std::optional<std::string> came = "";
    for (int i = 0; i < 1000 && came; ++i) {
      SSL_key_update(flood.get(), kind);
      if (SSL_do_handshake(flood.get()) != 1) break;
      if (i % 100 == 0) came = read_some(*both.answering, 100);
    }
    if (came) came = read_some(*both.answering, 100);
    BOOST_TEST(!came.has_value());
    BOOST_TEST(both.answering->problem().why == "it sent new keys or tickets of TLS without end");
  }
}

BOOST_AUTO_TEST_CASE(at_most_64_KiB_wait_in_the_session) {  // TL-2
  const own_cluster mine;
  tls_pair both(of(mine.kit("a")), of(mine.kit("b")));
  both.shake_hands();
  const std::string much(1 << 20, 'x');
  std::size_t taken = 0;
  ssize_t last = 0;
  while ((last = both.caller->write(much.data(), much.size(), false)) > 0) {
    BOOST_TEST_REQUIRE(static_cast<std::size_t>(last) <= tls_session::most_taken);
    taken += static_cast<std::size_t>(last);
  }
  BOOST_TEST(errno == EAGAIN);
  BOOST_TEST(both.caller->has_unsent());
  std::size_t came = 0;
  for (int i = 0; i < 100'000 && came < taken; ++i) {
    const auto more = read_some(*both.answering, 100'000);
    BOOST_TEST_REQUIRE(more.has_value());
    came += more->size();
    both.caller->flush();
  }
  BOOST_TEST(came == taken);
  BOOST_TEST(!both.caller->has_unsent());
}

BOOST_AUTO_TEST_CASE(a_head_that_more_bytes_follow_leaves_with_them) {  // TL-8
  const own_cluster mine;
  tls_pair both(of(mine.kit("a")), of(mine.kit("b")));
  both.shake_hands();
  BOOST_TEST(both.caller->write("head, ", 6, true) == 6);
  BOOST_TEST(both.caller->flush());
  BOOST_TEST(both.caller->has_unsent());
  BOOST_TEST(read_some(*both.answering, 100).value() == "");
  BOOST_TEST(both.caller->write("rest", 4, false) == 4);
  BOOST_TEST(!both.caller->has_unsent());
  BOOST_TEST(read_some(*both.answering, 100).value() == "head, rest");
  const std::string large(tls_session::most_kept + 1, 'x');
  BOOST_TEST(both.caller->write(large.data(), large.size(), true) == static_cast<ssize_t>(large.size()));
  BOOST_TEST(!both.caller->has_unsent());
}

BOOST_AUTO_TEST_CASE(what_is_looked_at_stays_and_what_is_held_is_told) {
  const own_cluster mine;
  tls_pair both(of(mine.kit("a")), of(mine.kit("b")));
  both.shake_hands();
  BOOST_TEST(both.caller->write("hello", 5, false) == 5);
  char bytes[5] = {};
  BOOST_TEST(both.answering->peek({bytes, 3}) == 3);
  BOOST_TEST(both.answering->has_unread());
  BOOST_TEST(both.answering->read({bytes, 2}, {bytes + 2, 2}) == 4);
  BOOST_TEST(std::string(bytes, 4) == "hell");
  BOOST_TEST(both.answering->has_unread());
  BOOST_TEST(both.answering->read({bytes, 5}, {}) == 1);
  BOOST_TEST(!both.answering->has_unread());
  BOOST_TEST(both.answering->read({bytes, 5}, {}) < 0);
  BOOST_TEST(errno == EAGAIN);
}

/// A socket that keeps messages apart shows how often the session asks it: each time brings one message.
BOOST_AUTO_TEST_CASE(a_socket_that_gave_less_than_it_could_is_not_asked_again) {  // TL-6
  const own_cluster mine;
  int sockets[2] = {};
  BOOST_TEST_REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, sockets) == 0);
  const owned_descriptor at_caller(sockets[0]);
  const owned_descriptor at_called(sockets[1]);
  tls_session caller(of(mine.kit("a")), at_caller.get(), end_of::calling, "there");
  tls_session answering(of(mine.kit("b")), at_called.get(), end_of::called);
  for (int i = 0; i < 5; ++i) {
    caller.shake_hands();
    answering.shake_hands();
  }
  BOOST_TEST_REQUIRE(caller.is_proven());
  BOOST_TEST_REQUIRE(answering.is_proven());
  for (const char* each : {"one", "two"}) BOOST_TEST(caller.write(each, 3, false) == 3);
  BOOST_TEST(read_some(answering, 100).value_or("over") == "one");
  BOOST_TEST(!answering.has_unread());
  BOOST_TEST(read_some(answering, 100).value_or("over") == "two");
  BOOST_TEST(read_some(answering, 100).value_or("over") == "");
}

BOOST_AUTO_TEST_CASE(bytes_that_are_no_TLS_end_the_handshake) {  // TL-1
  const own_cluster mine;
  const auto a = of(mine.kit("a"));
  std::mt19937 random(7);
  for (int i = 0; i < 300; ++i) {
    tls_pair both(a, a);
    std::string bytes(1 + random() % 400, '\0');
    for (auto& each : bytes) each = static_cast<char>(random());
    if (i % 3 == 0) bytes = std::string(40, '\0');  // as CAF's handshake begins
    if (i % 3 == 1) bytes.replace(0, 3, "\x16\x03\x01");
    BOOST_TEST_REQUIRE(::send(both.ends.caller.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) > 0);
    auto how = both.answering->shake_hands();
    ::shutdown(both.ends.caller.get(), SHUT_WR);
    for (int more = 0; more < 5; ++more) how = both.answering->shake_hands();
    BOOST_TEST((how == progress::failed));
    BOOST_TEST(!both.answering->problem().why.empty());
    char byte = 0;
    BOOST_TEST(both.answering->read({&byte, 1}, {}) < 0);
  }
}

BOOST_AUTO_TEST_CASE(a_record_that_was_changed_on_the_way_ends_the_connection) {
  const own_cluster mine;
  tls_pair both(of(mine.kit("a")), of(mine.kit("b")));
  both.shake_hands();
  BOOST_TEST(both.caller->write("hello", 5, false) == 5);
  std::string record(200, '\0');
  const auto came = ::recv(both.ends.called.get(), record.data(), record.size(), MSG_DONTWAIT);
  BOOST_TEST_REQUIRE(came > 20);
  record.resize(static_cast<std::size_t>(came));
  record[15] = static_cast<char>(record[15] ^ 1);
  BOOST_TEST(::send(both.ends.caller.get(), record.data(), record.size(), 0) == came);
  char byte = 0;
  const auto got = both.answering->read({&byte, 1}, {});
  const int problem = errno;
  BOOST_TEST(got < 0);
  BOOST_TEST(problem == EPROTO);
  BOOST_TEST(contains(both.answering->problem().why, "TLS failed: "));
  BOOST_TEST(both.answering->write("x", 1, false) < 0);
}

BOOST_AUTO_TEST_CASE(prove_within_ends_at_its_deadline) {
  const own_cluster mine;
  tls_pair both(of(mine.kit("a")), of(mine.kit("b")));
  const auto why = troupe::gate::prove_within(*both.caller, both.ends.caller.get(), std::chrono::milliseconds(30));
  BOOST_TEST_REQUIRE(why.has_value());
  BOOST_TEST(contains(why->why, "30 ms"), why->why);
}

BOOST_AUTO_TEST_SUITE_END()
