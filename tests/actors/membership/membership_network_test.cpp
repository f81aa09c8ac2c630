// SPDX-License-Identifier: BSD-3-Clause
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <csignal>
#include <mutex>

#include <boost/test/unit_test.hpp>
#include <caf/io/middleman.hpp>
#include <caf/scoped_actor.hpp>

#include <troupe/actors/membership/dialer.hpp>
#include <troupe/actors/settings.hpp>
#include <troupe/actors/support/owned_descriptor.hpp>

#include "actors/loopback_nodes.hpp"
#include "actors/membership_fixture.hpp"
#include "actors/odd_server.hpp"
#include "support/contains.hpp"

namespace {

using namespace troupe;
using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

constexpr auto heartbeat_interval = 100ms;

/// A node with nothing but its membership, in the network thread of an actor system of its own.
class real_node {
 public:
  explicit real_node(std::string name, std::uint64_t id, std::uint16_t port = 0) {
    membership::membership_options options;
    options.self = {std::move(name), node_id{id}, "127.0.0.1", 0};
    options.heartbeat = heartbeat_interval;
    options.patience = 300ms;
    dialer_ = membership::spawn_dialer(system_);
    connector_ = system_.spawn([this](caf::event_based_actor* self) -> caf::behavior {
      return {[this, self](caf::connect_atom, const std::string& host, std::uint16_t to, std::int64_t left_ns) {
        ++dials_;
        return self->delegate(dialer_, caf::connect_atom::value, host, to, left_ns);
      }};
    });
    options.connector = connector_;
    membership_ = membership::spawn_membership(system_, options);
    gateway_ = system_.spawn(test::make_face, membership_, std::make_shared<bool>(false));
    listener_ = system_.spawn([this](caf::event_based_actor*) -> caf::behavior {
      return {
        [this](const contracts::peer_up& x) { hear((x.again ? "up again " : "up ") + x.who.name); },
        [this](const contracts::peer_down& x) { hear((x.is_gone ? "gone " : "unreachable ") + x.who.name + ": " + x.reason); }};
    });
    caf::anon_send(membership_, support::subscribe_atom::value, listener_);
    auto bound = system_.middleman().publish(gateway_, port, "127.0.0.1", true);
    if (!bound) throw std::runtime_error("can't listen: " + system_.render(bound.error()));
    port_ = *bound;
    caf::anon_send(membership_, support::listen_atom::value, caf::actor_cast<caf::strong_actor_ptr>(gateway_), port_);
  }

  ~real_node() {
    system_.middleman().unpublish(gateway_, port_);
    for (const auto& actor :
         {caf::actor_cast<caf::actor>(membership_), gateway_, listener_, connector_, caf::actor_cast<caf::actor>(dialer_)})
      caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
  }

  std::uint16_t port() const { return port_; }
  /// How often this node has dialled.
  int dials() const { return dials_; }
  const contracts::membership_host& membership() const { return membership_; }
  caf::actor_system& system() { return system_; }

  template <class T, class... Ts>
  test::answer<T> ask(std::chrono::nanoseconds deadline, Ts... xs) {
    test::answer<T> result;
    caf::scoped_actor self{system_};
    const auto failed = [&](caf::error& x) { result.failure = to_exception(x); };
    auto request = self->request(caf::actor_cast<caf::actor>(membership_), deadline + 2s, xs...);
    if constexpr (std::is_same_v<T, caf::unit_t>)
      request.receive([&] { result.value.emplace(); }, failed);
    else
      request.receive([&](T& x) { result.value = std::move(x); }, failed);
    return result;
  }
  test::answer<member> join(std::uint16_t port, std::chrono::nanoseconds deadline = 5s) {
    return ask<member>(deadline, support::join_atom::value, std::string("127.0.0.1"), port, std::int64_t{deadline.count()});
  }
  std::size_t peers() { return ask<std::vector<member>>(1s, support::list_atom::value).value.value().size(); }

  /// Waits until `count` pieces of news have come, or for 5 s. Returns all news so far.
  std::vector<std::string> news(std::size_t count) {
    std::unique_lock lock(mutex_);
    heard_.wait_for(lock, 5s, [&] { return news_.size() >= count; });
    return news_;
  }

 private:
  void hear(std::string text) {
    std::lock_guard lock(mutex_);
    news_.push_back(std::move(text));
    heard_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable heard_;
  std::vector<std::string> news_;
  nodes::system_config config_{settings{}};
  caf::actor_system system_{config_};
  membership::dialer_actor dialer_;
  std::atomic<int> dials_ = 0;
  contracts::membership_host membership_;
  caf::actor connector_;
  caf::actor gateway_;
  caf::actor listener_;
  std::uint16_t port_ = 0;
};

/// A node in a process of its own, forked while this one has a single thread; it lives until it is killed.
class child_node {
 public:
  /// `when`: when the child starts its node.
  enum class when { now, told };
  child_node(const std::string& name, std::uint64_t id, std::uint16_t port = 0, when start = when::now) {
    auto ends = support::make_pipe();
    auto go = support::make_pipe();
    BOOST_TEST_REQUIRE((bool{ends.read} && bool{go.read}));
    pid_ = fork();
    BOOST_TEST_REQUIRE(pid_ >= 0);
    if (pid_ == 0) {
      char word = 0;
      if (start == when::told && read(go.read.get(), &word, 1) != 1) _exit(1);
      real_node node(name, id, port);
      const auto bound = node.port();
      if (write(ends.write.get(), &bound, sizeof bound) != sizeof bound) _exit(1);
      while (true) pause();
    }
    news_ = std::move(ends.read);
    go_ = std::move(go.write);
    ends.write = {};
    if (start == when::now) wait_for_port();
  }
  ~child_node() { end(); }

  /// Starts the node of a child that waits to be told.
  void start() {
    BOOST_TEST_REQUIRE(write(go_.get(), "g", 1) == 1);
    wait_for_port();
  }
  void signal(int number) { kill(pid_, number); }
  void end() {
    if (pid_ <= 0) return;
    signal(SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  std::uint16_t port() const { return port_; }

 private:
  void wait_for_port() { BOOST_TEST_REQUIRE(read(news_.get(), &port_, sizeof port_) == static_cast<ssize_t>(sizeof port_)); }

  pid_t pid_ = 0;
  std::uint16_t port_ = 0;
  support::owned_descriptor news_;
  support::owned_descriptor go_;
};

using troupe::test::contains;

}  // namespace

BOOST_AUTO_TEST_CASE(three_systems_meet_and_part_over_loopback) {
  real_node a("a", 1), b("b", 2);
  BOOST_TEST_REQUIRE(b.join(a.port()).value.has_value());
  {
    real_node c("c", 3);
    const auto joined = c.join(a.port());
    BOOST_TEST_REQUIRE(joined.value.has_value());
    BOOST_TEST(joined.value->name == "a");
    BOOST_TEST(joined.value->port == a.port());
    BOOST_TEST(a.peers() == 2);
    BOOST_TEST(b.peers() == 2);
    BOOST_TEST(c.peers() == 2);
    BOOST_TEST(c.ask<caf::unit_t>(1s, support::leave_atom::value, std::string("done")).value.has_value());
  }
  BOOST_TEST(a.news(3).back() == "gone c: left: done");
  BOOST_TEST(b.news(3).back() == "gone c: left: done");
  BOOST_TEST(a.peers() == 1);
}

BOOST_AUTO_TEST_CASE(two_nodes_may_join_each_other_at_the_same_moment) {
  for (int round = 0; round < 10; ++round) {
    real_node a("a", 1), b("b", 2);
    caf::scoped_actor self{a.system()};
    std::optional<member> from_a;
    auto waiting = self->request(a.membership(), 7s, support::join_atom::value, std::string("127.0.0.1"), b.port(),
                                 std::int64_t{5'000'000'000});
    const auto from_b = b.join(a.port());
    std::string failure;
    waiting.receive([&](member& x) { from_a = x; }, [&](caf::error& x) { failure = to_exception(x).what(); });
    BOOST_TEST(from_a.has_value(), failure);
    BOOST_TEST(from_b.value.has_value(), (from_b.failure ? from_b.failure->what() : ""));
    BOOST_TEST(a.peers() == 1);
    BOOST_TEST(b.peers() == 1);
  }
}

BOOST_AUTO_TEST_CASE(a_killed_process_is_gone_at_once_and_its_name_is_free) {
  child_node child("stage1", 2);
  child_node again("stage1", 3);  // started before this process has threads; the same name, joined when the first is dead
  real_node driver("driver", 1);
  BOOST_TEST_REQUIRE(driver.join(child.port()).value.has_value());
  const auto killed = clock::now();
  child.end();
  BOOST_TEST_REQUIRE(driver.news(2).size() >= 2);
  const auto took = clock::now() - killed;
  const auto news = driver.news(3);
  BOOST_TEST_REQUIRE(news.size() == 3);
  BOOST_TEST(news[1] == "unreachable stage1: connection lost");
  BOOST_TEST(contains(news[2], "gone stage1: its process has ended"), news[2]);
  BOOST_TEST((took < heartbeat_interval * 3));
  const auto joined = driver.join(again.port());
  BOOST_TEST_REQUIRE(joined.value.has_value());
  BOOST_TEST((joined.value->id == node_id{3}));
  BOOST_TEST(driver.news(4).back() == "up stage1");
}

// ME-5
BOOST_AUTO_TEST_CASE(a_process_started_again_at_the_same_port_is_met_without_being_asked) {
  std::uint16_t port = 0;
  {
    test::odd_server server;
    port = server.port();
  }
  child_node child("stage1", 2, port);
  child_node again("stage1", 3, port, child_node::when::told);
  real_node driver("driver", 1);
  BOOST_TEST_REQUIRE(driver.join(port).value.has_value());
  child.end();
  BOOST_TEST_REQUIRE(driver.news(3).size() == 3);
  again.start();
  BOOST_TEST_REQUIRE(driver.news(4).size() == 4);
  BOOST_TEST(driver.news(4).back() == "up stage1");
}

// ME-2, ME-5: the connection of a stopped process stands.
BOOST_AUTO_TEST_CASE(a_stopped_process_is_unreachable_after_three_missed_heartbeats_and_up_again_when_it_goes_on) {
  child_node child("stage1", 2);
  real_node driver("driver", 1);
  BOOST_TEST_REQUIRE(driver.join(child.port()).value.has_value());
  for (std::size_t round = 1; round <= 2; ++round) {
    const auto stopped = clock::now();
    child.signal(SIGSTOP);
    const auto news = driver.news(2 * round);
    const auto took = clock::now() - stopped;
    BOOST_TEST_REQUIRE(news.size() == 2 * round);
    BOOST_TEST(contains(news.back(), "unreachable stage1: no sign of life for"), news.back());
    BOOST_TEST((took >= 2 * heartbeat_interval));
    BOOST_TEST((took < 3s));
    child.signal(SIGCONT);
    BOOST_TEST(driver.news(2 * round + 1).back() == "up again stage1");
  }
}

// ME-5: the connection to a process that is stopped for long is cut, and made anew when the process goes on.
BOOST_AUTO_TEST_CASE(a_process_that_was_stopped_for_long_is_up_again_over_a_new_connection) {
  child_node child("stage1", 2);
  real_node driver("driver", 1);
  BOOST_TEST_REQUIRE(driver.join(child.port()).value.has_value());
  child.signal(SIGSTOP);
  BOOST_TEST_REQUIRE(driver.news(2).size() == 2);
  BOOST_TEST(test::becomes_true([&] { return driver.dials() > 1; }));  // the first dial was that of the join
  child.signal(SIGCONT);
  BOOST_TEST(driver.news(3).back() == "up again stage1");
}

// ME-3
BOOST_AUTO_TEST_CASE(joining_a_server_that_says_nothing_ends_at_the_deadline) {
  test::odd_server server;
  real_node driver("driver", 1);
  const auto begun = clock::now();
  const auto joined = driver.join(server.port(), 400ms);
  BOOST_TEST((clock::now() - begun < 2s));
  BOOST_TEST_REQUIRE(joined.failure.has_value());
  BOOST_TEST((joined.failure->code() == errc::deadline_passed));
  BOOST_TEST(contains(joined.failure->what(), "127.0.0.1:" + std::to_string(server.port())), joined.failure->what());
}

BOOST_AUTO_TEST_CASE(joining_a_closed_port_or_itself_fails_with_the_address) {
  std::uint16_t port = 0;
  {
    test::odd_server server;
    port = server.port();
  }
  real_node driver("driver", 1);
  const auto joined = driver.join(port);
  BOOST_TEST_REQUIRE(joined.failure.has_value());
  BOOST_TEST(contains(joined.failure->what(), "no node listens at 127.0.0.1:" + std::to_string(port)), joined.failure->what());
  const auto own = driver.join(driver.port());
  BOOST_TEST_REQUIRE(own.failure.has_value());
  BOOST_TEST(contains(own.failure->what(), "can't join itself"), own.failure->what());
}
