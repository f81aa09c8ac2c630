// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/dialer.hpp>

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>

#include <boost/test/unit_test.hpp>
#include <caf/actor_cast.hpp>
#include <caf/actor_system.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/io/middleman.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/sec.hpp>
#include <caf/send.hpp>

#include <troupe/actors/settings.hpp>
#include <troupe/actors/system_config.hpp>
#include <troupe/messages/caf_error.hpp>

#include "actors/odd_server.hpp"
#include "support/no_more_threads.hpp"

namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;
using troupe::test::odd_server;

struct caller {
  troupe::system_config config{troupe::settings{}};
  caf::actor_system system{config};
  troupe::dialer_actor dialer = troupe::spawn_dialer(system);

  ~caller() { caf::anon_send_exit(dialer, caf::exit_reason::user_shutdown); }

  auto dial(caf::scoped_actor& self, const std::string& host, std::uint16_t port, std::chrono::nanoseconds deadline) {
    return self->request(dialer, 10s, caf::connect_atom::value, host, port, std::int64_t{deadline.count()});
  }

  // The error of one call; none where a face was given.
  caf::error call(std::uint16_t port, std::chrono::nanoseconds deadline = 5s, const std::string& host = "127.0.0.1") {
    caf::scoped_actor self{system};
    caf::error result;
    dial(self, host, port, deadline)
      .receive([](caf::node_id&, caf::strong_actor_ptr& face, std::set<std::string>&) { BOOST_TEST((face != nullptr)); },
               [&](caf::error& problem) { result = problem; });
    return result;
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_node_is_reached_by_address_and_by_name) {
  caller here;
  caller there;
  auto face = there.system.spawn([](caf::event_based_actor*) -> caf::behavior { return {[](int) {}}; });
  const auto port = there.system.middleman().publish(face, 0, "127.0.0.1");
  BOOST_TEST_REQUIRE(static_cast<bool>(port));
  BOOST_TEST(!here.call(*port));
  BOOST_TEST(!here.call(*port, 5s, "localhost"));
  there.system.middleman().unpublish(face, *port);
  caf::anon_send_exit(face, caf::exit_reason::user_shutdown);
}

// DI-1. The system ends, each time: a handshake that the middleman waits for would keep it one time in five.
BOOST_AUTO_TEST_CASE(a_mute_server_is_given_up_at_the_deadline_and_the_system_ends) {
  odd_server mute;
  for (int round = 0; round < 25; ++round) {
    caller here;
    BOOST_TEST((here.call(mute.port(), 20ms) == caf::sec::request_timeout));
  }
}

// DI-1
BOOST_AUTO_TEST_CASE(a_dialer_that_gets_no_thread_says_so_and_dials_again_later_and_the_system_ends) {
  caller here;
  odd_server mute;
  {
    const troupe::test::no_more_threads none;
    const auto problem = here.call(mute.port());
    BOOST_TEST((problem == troupe::errc::function_failed));
    const std::string text = troupe::to_exception(problem).what();
    BOOST_TEST(text.starts_with("the system gives no thread to dial with; raise the limit"), text);
  }
  BOOST_TEST((here.call(mute.port(), 20ms) == caf::sec::request_timeout));
}

// DI-1: a thread that was to be had a moment ago may be refused.
BOOST_AUTO_TEST_CASE(a_dialer_answers_every_call_while_threads_come_and_go) {
  caller here;
  odd_server leaver("", true);
  std::atomic<bool> over{false};
  std::thread coming_and_going([&] {
    while (!over) const troupe::test::no_more_threads none;
  });
  int refused = 0;
  for (int i = 0; i < 500; ++i) {
    const auto problem = here.call(leaver.port());
    const bool no_thread = problem == troupe::errc::function_failed;
    BOOST_TEST((no_thread || problem == caf::sec::cannot_connect_to_node), troupe::to_exception(problem).what());
    refused += no_thread ? 1 : 0;
  }
  over = true;
  coming_and_going.join();
  BOOST_TEST_MESSAGE(refused << " of 500 calls got no thread");
}

// DI-1
BOOST_AUTO_TEST_CASE(nobody_is_told_from_a_stranger) {
  caller here;
  odd_server greeter("SSH-2.0-troupe\r\n");
  odd_server leaver("", true);
  std::uint16_t closed = 0;
  {
    odd_server server;
    closed = server.port();
  }
  BOOST_TEST((here.call(greeter.port()) == caf::sec::unexpected_message));
  BOOST_TEST((here.call(leaver.port()) == caf::sec::cannot_connect_to_node));
  BOOST_TEST((here.call(closed) == caf::sec::cannot_connect_to_node));
}

// DI-1
BOOST_AUTO_TEST_CASE(a_host_name_without_an_address_is_named) {
  caller here;
  const auto problem = here.call(1, 5s, "no such host");
  BOOST_TEST((problem == troupe::errc::misuse));
  const std::string text = troupe::to_exception(problem).what();
  BOOST_TEST(text.starts_with("the host name 'no such host' has no address ("), text);
}

// DI-3
BOOST_AUTO_TEST_CASE(one_mute_server_does_not_hold_up_the_others) {
  caller here;
  odd_server mute;
  odd_server greeter("hello");
  caf::scoped_actor self{here.system};
  const auto begun = clock::now();
  auto slow = here.dial(self, "127.0.0.1", mute.port(), 1s);
  BOOST_TEST((here.call(greeter.port()) == caf::sec::unexpected_message));
  BOOST_TEST((clock::now() - begun < 1s));
  std::optional<caf::error> problem;
  slow.receive([](caf::node_id&, caf::strong_actor_ptr&, std::set<std::string>&) {}, [&](caf::error& x) { problem = x; });
  BOOST_TEST_REQUIRE(problem.has_value());
  BOOST_TEST((*problem == caf::sec::request_timeout));
}

// DI-3
BOOST_AUTO_TEST_CASE(the_system_ends_in_the_middle_of_a_call) {
  odd_server mute;
  const auto begun = clock::now();
  {
    caller here;
    caf::scoped_actor self{here.system};
    here.dial(self, "127.0.0.1", mute.port(), 60s);
  }
  BOOST_TEST((clock::now() - begun < 5s));
}
