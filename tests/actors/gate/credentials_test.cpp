// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/gate/credentials.hpp>

#include <fcntl.h>
#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <troupe/messages/errors.hpp>

#include "actors/certificates/own_cluster.hpp"
#include "actors/gate/tls_pair.hpp"
#include "support/contains.hpp"

BOOST_AUTO_TEST_SUITE(credentials_of_a_node)

namespace {

using namespace troupe::test;
using clock = std::chrono::system_clock;

/// What both ends say of a connection between two kits.
std::pair<std::string, std::string> refusals(const proof& calling, const proof& called) {
  tls_pair both(calling, called);
  both.shake_hands();
  if (both.at_caller == progress::proven) {  // the caller learns of a refusal with the first bytes that it waits for
    char byte = 0;
    BOOST_TEST(both.caller->peek({&byte, 1}) <= 0);
  }
  BOOST_TEST((both.at_called == progress::failed));
  return {both.caller->problem().why, both.answering->problem().why};
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_wrong_certificate_is_named_at_both_ends) {  // CD-1
  const own_cluster mine("mine", clock::now() - std::chrono::hours(24 * 30));
  const own_cluster other("other");
  const auto a = of(mine.kit("a"));
  const auto stranger = of(other.kit("x"));
  // Both ends find a fault in the certificate of the other end. The calling end reads its certificate first.
  const auto [caller, called] = refusals(a, stranger);
  BOOST_TEST(contains(caller, "node 'x' of cluster 'other' is of another authority"), caller);
  BOOST_TEST(contains(called, "it says that this node's certificate is of another authority"), called);
  mine.authority().issue("b", "member", {}, clock::now());
  const auto b_kit = mine.kit("b");
  mine.authority().revoke("b", clock::now());
  const auto [revoked, knows] = refusals(of(b_kit), of(mine.kit("a"), mine.revoked()));
  BOOST_TEST(contains(knows, "node 'b' of cluster 'mine' was revoked"), knows);
  BOOST_TEST(contains(revoked, "it says that this node's certificate was revoked"), revoked);
}

BOOST_AUTO_TEST_CASE(a_certificate_that_expires_while_the_node_runs_is_refused) {  // CD-1
  const own_cluster mine("mine", clock::now() - std::chrono::hours(48));
  // Valid for one or two more seconds: the kit can be read, and then expires.
  const auto kit = mine.kit("late", clock::now() - std::chrono::hours(24) + std::chrono::seconds(2));
  const auto late = of(kit);
  const auto a = of(mine.kit("a"));
  const auto until = clock::now() + std::chrono::seconds(10);
  std::pair<std::string, std::string> said;
  int resumed = 0;
  while (clock::now() < until) {
    tls_pair both(late, a, "there");
    both.shake_hands();
    if (both.at_called == progress::proven) {
      move(*both.answering, *both.caller, "x");  // the ticket comes with it
      resumed += both.answering->is_resumed() ? 1 : 0;
      continue;
    }
    char byte = 0;
    BOOST_TEST(both.caller->peek({&byte, 1}) <= 0);
    said = {both.caller->problem().why, both.answering->problem().why};
    break;
  }
  BOOST_TEST(contains(said.second, "node 'late' of cluster 'mine' expired at"), said.second);
  BOOST_TEST(contains(said.first, "has expired, or is not valid yet"), said.first);
  BOOST_TEST(resumed > 0);  // there was a session that could have been resumed
}

// Each unproven connection may take as much memory as its certificate.
BOOST_AUTO_TEST_CASE(a_certificate_that_is_too_long_is_refused) {  // CD-7
  const own_cluster mine;
  const auto a = of(mine.kit("a"));
  const auto with_hosts = [&](const std::string& name, int count) {
    std::vector<std::string> hosts;
    for (int i = 0; i < count; ++i) hosts.push_back("host" + std::to_string(i) + ".a-long-name.example.org");
    const auto kit = mine.file(name + ".pem");
    troupe::certificates::write_kit(mine.authority().issue(name, "member", hosts, clock::now()), kit, true);
    return of(kit);
  };
  tls_pair short_one(with_hosts("short", 200), a);
  short_one.shake_hands();
  BOOST_TEST((short_one.at_called == progress::proven));
  tls_pair long_one(with_hosts("long", 1000), a);
  long_one.shake_hands();
  BOOST_TEST((long_one.at_called == progress::failed));
  BOOST_TEST(contains(long_one.answering->problem().why, "excessive message size"), long_one.answering->problem().why);
}

BOOST_AUTO_TEST_CASE(later_connections_resume_the_session) {
  const own_cluster mine;
  const auto a = of(mine.kit("a"));
  const auto b = of(mine.kit("b"));
  const auto is_resumed = [&](const std::string& whom) {
    tls_pair both(a, b, whom);
    both.shake_hands();
    BOOST_TEST((both.at_called == progress::proven));
    BOOST_TEST(both.answering->other().node == "a");
    BOOST_TEST(both.caller->other().node == "b");
    move(*both.answering, *both.caller, "x");  // the ticket comes with it
    BOOST_TEST(both.caller->is_resumed() == both.answering->is_resumed());
    return both.caller->is_resumed();
  };
  BOOST_TEST(!is_resumed("there"));
  BOOST_TEST(is_resumed("there"));
  BOOST_TEST(!is_resumed("elsewhere"));
  BOOST_TEST(is_resumed("there"));
}

BOOST_AUTO_TEST_CASE(only_so_many_sessions_are_kept) {  // CD-2
  const own_cluster mine;
  const auto a = of(mine.kit("a"));
  const auto b = of(mine.kit("b"));
  const auto is_resumed = [&](std::size_t whom) {
    tls_pair both(a, b, std::to_string(whom));
    both.shake_hands();
    move(*both.answering, *both.caller, "x");
    return both.caller->is_resumed();
  };
  const auto more = credentials::most_sessions + 10;
  std::size_t kept = 0;
  for (std::size_t whom = 0; whom < more; ++whom) BOOST_TEST_REQUIRE(!is_resumed(whom));
  for (std::size_t whom = more; whom-- > 0;) kept += is_resumed(whom) ? 1 : 0;
  BOOST_TEST(kept <= credentials::most_sessions);
  BOOST_TEST(kept > credentials::most_sessions / 2);
}

BOOST_AUTO_TEST_CASE(no_session_of_a_revoked_node_is_resumed) {  // CD-1, CD-3, CD-4
  const own_cluster mine;
  const auto a = of(mine.kit("a"), mine.revoked());
  const auto b = of(mine.kit("b"));
  tls_pair first(b, a);
  first.shake_hands();
  BOOST_TEST(move(*first.answering, *first.caller, "x") == "x");
  BOOST_TEST(!a->reload().has_changed);

  mine.authority().revoke("b", clock::now());
  const auto news = a->reload();
  BOOST_TEST(news.has_changed);
  BOOST_TEST(news.cut == 1U);
  BOOST_TEST(news.problems.empty());
  BOOST_TEST(!read_some(*first.answering, 10).has_value());

  const auto [caller, called] = refusals(b, a);
  BOOST_TEST(contains(called, "was revoked"), called);
  BOOST_TEST(contains(caller, "revoked"), caller);
}

namespace {

/// The bytes that come to a socket at once.
std::string waiting_at(const troupe::support::owned_descriptor& socket) {
  pollfd watched{socket.get(), POLLIN, 0};
  BOOST_TEST_REQUIRE(::poll(&watched, 1, 10'000) == 1);
  std::string result(100'000, '\0');
  const auto came = ::recv(socket.get(), result.data(), result.size(), MSG_DONTWAIT);
  result.resize(came > 0 ? static_cast<std::size_t>(came) : 0);
  return result;
}

/// Where the last record of TLS begins.
std::size_t begin_of_last_record(const std::string& records) {
  std::size_t last = 0;
  for (std::size_t at = 0; at + 5 <= records.size();) {
    last = at;
    at += 5 + (static_cast<unsigned char>(records[at + 3]) << 8U) + static_cast<unsigned char>(records[at + 4]);
  }
  return last;
}

/// Makes a connection, and ends it. The calling end may then resume its session.
void leave_a_session(const proof& calling, const proof& called, const std::string& whom) {
  tls_pair both(calling, called, whom);
  both.shake_hands();
  move(*both.answering, *both.caller, "x");
}

/// Two sessions with a host between them that holds bytes back.
struct held_pair {
  held_pair(const proof& calling, const proof& called, const std::string& whom) {
    for (const auto* each : {&left.caller, &right.called}) ::fcntl(each->get(), F_SETFL, O_NONBLOCK);
    caller = std::make_unique<tls_session>(calling, left.caller.get(), end_of::calling, whom);
    answering = std::make_unique<tls_session>(called, right.called.get(), end_of::called);
  }

  /// Passes on what the end that `from` belongs to has sent, but not its last record, which is returned.
  static std::string pass_all_but_the_last(const troupe::support::owned_descriptor& from,
                                           const troupe::support::owned_descriptor& to) {
    const auto all = waiting_at(from);
    const auto split = begin_of_last_record(all);
    BOOST_TEST_REQUIRE(split > 0U);
    send(to, all.substr(0, split));
    return all.substr(split);
  }

  /// Sends to the other end of the connection, and waits until that end has the bytes.
  static void send(const troupe::support::owned_descriptor& to, const std::string& bytes) {
    BOOST_TEST_REQUIRE(::send(to.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size()));
    int unsent = 1;
    while (unsent > 0) BOOST_TEST_REQUIRE(::ioctl(to.get(), SIOCOUTQ, &unsent) == 0);
  }

  troupe::test::loopback_connection left;   // the caller's
  troupe::test::loopback_connection right;  // of the end that is called
  std::unique_ptr<tls_session> caller;
  std::unique_ptr<tls_session> answering;
};

}  // namespace

// A node that held back the end of its handshake until the list had come kept its connection: reload() saw no proven connection,
// and the certificate had been checked before.
BOOST_AUTO_TEST_CASE(who_is_revoked_in_the_middle_of_a_handshake_proves_nothing) {  // CD-1, CD-4
  for (const bool resumes : {false, true}) {
    const own_cluster mine;
    const auto a = of(mine.kit("a"), mine.revoked());
    const auto b = of(mine.kit("b"));
    if (resumes) leave_a_session(b, a, "a");
    held_pair both(b, a, "a");
    both.caller->shake_hands();
    held_pair::send(both.right.caller, waiting_at(both.left.called));
    both.answering->shake_hands();
    held_pair::send(both.left.called, waiting_at(both.right.caller));
    both.caller->shake_hands();
    BOOST_TEST(both.caller->is_resumed() == resumes);
    const auto last = held_pair::pass_all_but_the_last(both.left.called, both.right.caller);
    BOOST_TEST((both.answering->shake_hands() == progress::wants_to_read));
    mine.authority().revoke("b", clock::now());
    BOOST_TEST(a->reload().has_changed);
    held_pair::send(both.right.caller, last);
    BOOST_TEST((both.answering->shake_hands() == progress::failed));
    BOOST_TEST(contains(both.answering->problem().why, "node 'b' of cluster 'mine' was revoked"),
               both.answering->problem().why);
    char byte = 0;
    BOOST_TEST(both.answering->read({&byte, 1}, {}) < 0);
  }
}

BOOST_AUTO_TEST_CASE(who_is_revoked_while_it_is_called_proves_nothing) {  // CD-1, CD-4
  for (const bool resumes : {false, true}) {
    const own_cluster mine;
    const auto a = of(mine.kit("a"), mine.revoked());
    const auto b = of(mine.kit("b"));
    if (resumes) leave_a_session(a, b, "b");
    held_pair both(a, b, "b");
    both.caller->shake_hands();
    held_pair::send(both.right.caller, waiting_at(both.left.called));
    both.answering->shake_hands();
    const auto last = held_pair::pass_all_but_the_last(both.right.caller, both.left.called);
    BOOST_TEST((both.caller->shake_hands() == progress::wants_to_read));
    mine.authority().revoke("b", clock::now());
    BOOST_TEST(a->reload().has_changed);
    held_pair::send(both.left.called, last);
    BOOST_TEST((both.caller->shake_hands() == progress::failed));
    BOOST_TEST(contains(both.caller->problem().why, "node 'b' of cluster 'mine' was revoked"), both.caller->problem().why);
    BOOST_TEST((both.answering->shake_hands() != progress::proven));
  }
}

// A file that could not be opened for a moment (no descriptor was left) was never read again.
BOOST_AUTO_TEST_CASE(a_list_that_could_not_be_read_is_read_again) {  // CD-3
  const own_cluster mine;
  const auto b_kit = mine.kit("b");
  const auto a = of(mine.kit("a"), mine.revoked());
  const auto b = of(b_kit);
  tls_pair first(b, a);
  first.shake_hands();
  mine.authority().revoke("b", clock::now());
  {
    rlimit limit{};
    BOOST_TEST_REQUIRE(::getrlimit(RLIMIT_NOFILE, &limit) == 0);
    const auto free = ::dup(0);
    const rlimit none{static_cast<rlim_t>(free), limit.rlim_max};
    ::close(free);
    BOOST_TEST_REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
    const auto news = a->reload();
    const auto again = a->reload();
    BOOST_TEST_REQUIRE(::setrlimit(RLIMIT_NOFILE, &limit) == 0);
    BOOST_TEST(!news.has_changed);
    BOOST_TEST_REQUIRE(news.problems.size() == 1U);
    BOOST_TEST(contains(news.problems[0], mine.revoked()));
    BOOST_TEST(again.problems.empty());  // it is told once
  }
  const auto news = a->reload();
  BOOST_TEST(news.has_changed);
  BOOST_TEST(news.cut == 1U);
  BOOST_TEST(contains(refusals(b, a).second, "was revoked"));
}

BOOST_AUTO_TEST_CASE(a_kit_of_a_new_authority_cuts_connections_of_the_old_one) {  // CD-4
  const own_cluster stolen;
  const own_cluster next;
  const auto kit = stolen.kit("a");
  const auto a = of(kit);
  const auto b = of(stolen.kit("b"));
  tls_pair first(b, a);
  first.shake_hands();
  BOOST_TEST(move(*first.answering, *first.caller, "x") == "x");
  troupe::certificates::write_kit(next.authority().issue("a", "member", {}, clock::now()), kit, true);
  const auto news = a->reload();
  BOOST_TEST(news.has_changed);
  BOOST_TEST(news.cut == 1U);
  BOOST_TEST(!read_some(*first.answering, 10).has_value());
}

BOOST_AUTO_TEST_CASE(a_damaged_list_changes_nothing) {  // CD-3
  const own_cluster mine;
  const auto b_kit = mine.kit("b");
  mine.authority().revoke("b", clock::now());
  const auto a = of(mine.kit("a"), mine.revoked());
  std::filesystem::resize_file(mine.revoked(), 20);
  const auto news = a->reload();
  BOOST_TEST(!news.has_changed);
  BOOST_TEST_REQUIRE(news.problems.size() == 1U);
  BOOST_TEST(contains(news.problems[0], mine.revoked()));
  BOOST_TEST(a->reload().problems.empty());  // it is told once
  BOOST_TEST(contains(refusals(of(b_kit), a).second, "was revoked"));
  std::filesystem::remove(mine.revoked());
  BOOST_TEST(a->reload().problems.size() == 1U);
  BOOST_TEST(contains(refusals(of(b_kit), a).second, "was revoked"));
}

BOOST_AUTO_TEST_CASE(an_older_list_changes_nothing) {  // CD-5
  const own_cluster mine;
  const auto b_kit = mine.kit("b");
  const auto c_kit = mine.kit("c");
  const auto older = mine.file("older.pem");
  mine.authority().revoke("c", clock::now() - std::chrono::minutes(1));
  std::filesystem::copy_file(mine.revoked(), older);
  mine.authority().revoke("b", clock::now());
  const auto a = of(mine.kit("a"), mine.revoked());
  std::filesystem::rename(older, mine.revoked());
  const auto news = a->reload();
  BOOST_TEST(!news.has_changed);
  BOOST_TEST_REQUIRE(news.problems.size() == 1U);
  BOOST_TEST(contains(news.problems[0], "is an older list of revoked certificates than the one that counts"));
  BOOST_TEST(contains(refusals(of(b_kit), a).second, "was revoked"));
}

BOOST_AUTO_TEST_CASE(a_list_of_another_authority_is_not_older) {  // CD-5
  const own_cluster before;
  const own_cluster next("mine", clock::now() - std::chrono::hours(48));
  const auto list = before.file("list.pem");
  std::filesystem::copy_file(before.revoked(), list);
  const auto other_kit = before.kit("b");
  const auto b = of(other_kit, list);
  const auto c_kit = next.kit("c");
  next.authority().revoke("c", clock::now() - std::chrono::hours(47));
  std::filesystem::rename(next.revoked(), list);
  troupe::certificates::write_kit(next.authority().issue("b", "member", {}, clock::now()), other_kit, true);
  const auto news = b->reload();
  BOOST_TEST(news.has_changed);
  BOOST_TEST(contains(refusals(of(c_kit), b).second, "was revoked"));
}

BOOST_AUTO_TEST_CASE(a_list_is_younger_than_the_list_before_it_although_a_clock_was_set_back) {  // CD-5
  const own_cluster mine;
  const auto b_kit = mine.kit("b");
  const auto c_kit = mine.kit("c");
  mine.authority().revoke("c", clock::now() + std::chrono::hours(24));
  const auto a = of(mine.kit("a"), mine.revoked());
  mine.authority().revoke("b", clock::now());
  const auto news = a->reload();
  BOOST_TEST(news.problems.empty());
  BOOST_TEST(contains(refusals(of(b_kit), a).second, "was revoked"));
}

BOOST_AUTO_TEST_CASE(a_renewed_kit_counts_for_new_connections) {  // CD-3
  const own_cluster mine;
  const auto kit = mine.kit("a", clock::now() - std::chrono::minutes(5));
  const auto a = of(kit);
  troupe::certificates::write_kit(mine.authority().issue("a", "member", {}, clock::now()), kit, true);
  BOOST_TEST(a->reload().has_changed);
  tls_pair both(a, of(mine.kit("b")));
  both.shake_hands();
  BOOST_TEST((both.at_called == progress::proven));
  troupe::certificates::write_kit(mine.authority().issue("c", "member", {}, clock::now()), kit, true);
  const auto news = a->reload();
  BOOST_TEST_REQUIRE(news.problems.size() == 1U);
  BOOST_TEST(contains(news.problems[0], "is now the kit of node 'c' of the role member; expected one of node 'a'"));
  BOOST_TEST(a->own().node == "a");
}

BOOST_AUTO_TEST_CASE(a_node_learns_that_its_own_certificate_is_revoked_or_expires) {  // CD-6
  const own_cluster mine;
  const auto kit = mine.kit("a");
  const auto a = of(kit, mine.revoked());
  BOOST_TEST(a->reload().warning == "");
  const auto soon = clock::now() + std::chrono::hours(23);
  const auto expires = a->reload(soon).warning;
  BOOST_TEST(contains(expires, kit + ": this node's certificate expires in"), expires);
  BOOST_TEST(a->reload(soon).warning == "");  // it is told once
  mine.authority().revoke("a", clock::now());
  const auto news = a->reload();
  BOOST_TEST(news.has_changed);
  BOOST_TEST(contains(news.warning, "this node's certificate was revoked"), news.warning);
  BOOST_TEST(a->reload().warning == "");
  const auto is_told = [&](const troupe::error& x) {
    return x.code() == troupe::errc::misuse && contains(x.what(), kit + ": this node's certificate was revoked") &&
           contains(x.what(), mine.revoked());
  };
  BOOST_CHECK_EXCEPTION(of(kit, mine.revoked()), troupe::error, is_told);
  troupe::certificates::write_kit(mine.authority().issue("a", "member", {}, clock::now()), kit, true);
  BOOST_TEST(a->reload().warning == "");
  BOOST_TEST((of(kit, mine.revoked()) != nullptr));
}

BOOST_AUTO_TEST_CASE(an_end_without_a_certificate_is_refused) {  // CD-1
  const own_cluster mine;
  const auto kit = mine.kit("a");
  BOOST_CHECK_EXCEPTION(of(mine.file("none.pem")), troupe::error,
                        [](const auto& refused) { return contains(refused.what(), "none.pem"); });
  BOOST_CHECK_EXCEPTION(of(kit, mine.file("none.pem")), troupe::error,
                        [](const auto& refused) { return contains(refused.what(), "none.pem"); });
}

BOOST_AUTO_TEST_SUITE_END()
