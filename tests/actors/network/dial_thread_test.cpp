// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/network/dial_thread.hpp>

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <future>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <caf/sec.hpp>

#include <troupe/actors/support/host_lookup.hpp>
#include <troupe/messages/caf_error.hpp>

#include "actors/loopback_nodes.hpp"
#include "actors/odd_server.hpp"
#include "actors/slow_names.hpp"
#include "support/no_more_descriptors.hpp"
#include "support/thread_count.hpp"

using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(dial_threads)

namespace {

using troupe::network::dial_thread;
using troupe::test::becomes_true;
using troupe::test::no_more_descriptors;
using troupe::test::odd_server;
using troupe::test::slow_names;
using troupe::test::threads_of;

struct fixture {
  std::future<dial_thread::outcome> dial(const std::string& host, std::uint16_t port, std::chrono::milliseconds patience) {
    auto told = std::make_shared<std::promise<dial_thread::outcome>>();
    thread.dial(me, gate, host, port, dial_thread::clock::now() + patience,
                [told](dial_thread::outcome result) { told->set_value(std::move(result)); });
    return told->get_future();
  }
  std::future<dial_thread::outcome> dial(std::chrono::milliseconds patience = 60s) {
    return dial("127.0.0.1", mute.port(), patience);
  }
  static bool is_ready(const std::future<dial_thread::outcome>& what, std::chrono::milliseconds patience = 20s) {
    return what.wait_for(patience) == std::future_status::ready;
  }

  odd_server mute;
  odd_server greeter{"hello"};
  std::size_t before = threads_of();
  dial_thread thread;
  dial_thread::owner me = thread.new_owner();
  troupe::gate::connection_gate gate{troupe::gate::connection_gate::rule::same_user};
};

std::ptrdiff_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return std::distance(begin(all), end(all));
}

}  // namespace

BOOST_FIXTURE_TEST_CASE(dial_many_addresses_at_once_by_one_thread_which_ends, fixture) {  // DW-1
  const auto open = open_descriptors();
  std::vector<std::future<dial_thread::outcome>> all;
  for (int i = 0; i < 300; ++i) all.push_back(dial());
  BOOST_TEST(open_descriptors() >= open + 300);
  BOOST_TEST(threads_of() <= before + 1);
  auto greeted = dial("127.0.0.1", greeter.port(), 20s);
  BOOST_REQUIRE(is_ready(greeted));
  BOOST_TEST((greeted.get().problem == caf::sec::unexpected_message));
  thread.give_up(me);
  BOOST_TEST(becomes_true([&] { return threads_of() <= before; }), threads_of() << " threads, before " << before);
  for (auto& each : all) BOOST_CHECK_THROW(each.get(), std::future_error);
}

BOOST_FIXTURE_TEST_CASE(tell_by_the_deadline_of_each_attempt, fixture) {  // DW-2
  auto late = dial(60s);
  auto soon = dial(20ms);
  BOOST_REQUIRE(is_ready(soon));
  BOOST_TEST((soon.get().problem == caf::sec::request_timeout));
  BOOST_TEST(!is_ready(late, 0ms));
  auto again = dial(1ms);  // the thread waits for the other attempt's deadline
  BOOST_REQUIRE(is_ready(again));
  thread.give_up(me);
}

BOOST_FIXTURE_TEST_CASE(keep_the_attempts_of_other_owners, fixture) {  // DW-2
  auto mine = dial();
  me = thread.new_owner();
  auto other = dial(200ms);
  thread.give_up(me);
  BOOST_CHECK_THROW(other.get(), std::future_error);
  BOOST_TEST(!is_ready(mine, 0ms));
}

BOOST_FIXTURE_TEST_CASE(go_on_while_names_are_looked_up, fixture) {  // DW-1, DW-3
  const slow_names slow;
  std::vector<std::future<dial_thread::outcome>> names;
  for (int i = 0; i < 20; ++i) names.push_back(dial("slow", mute.port(), 100ms));
  BOOST_TEST(threads_of() <= before + 1 + troupe::support::name_lookups::most_threads);
  auto greeted = dial("127.0.0.1", greeter.port(), 20s);
  BOOST_REQUIRE(is_ready(greeted));
  BOOST_TEST((greeted.get().problem == caf::sec::unexpected_message));
  for (auto& each : names) {
    BOOST_REQUIRE(is_ready(each));
    BOOST_TEST((each.get().problem == caf::sec::request_timeout));
  }
}

BOOST_FIXTURE_TEST_CASE(begin_when_the_name_was_looked_up, fixture) {
  auto slow = std::make_unique<slow_names>();
  auto greeted = dial("slow", greeter.port(), 20s);
  BOOST_TEST(becomes_true([] { return slow_names::blocked() >= 1; }));  // look-ups that the test before gave up may block too
  slow = nullptr;
  BOOST_REQUIRE(is_ready(greeted));
  BOOST_TEST((greeted.get().problem == caf::sec::unexpected_message));
}

// A peer whose address "refuses" is taken for gone. A process without descriptors knows nothing about the address.
BOOST_FIXTURE_TEST_CASE(tell_a_process_without_sockets_from_an_address_where_nobody_listens, fixture) {
  std::future<dial_thread::outcome> dialled;
  {
    const no_more_descriptors none;
    dialled = dial();
  }
  BOOST_REQUIRE(is_ready(dialled));
  const auto problem = dialled.get().problem;
  BOOST_TEST((problem == troupe::errc::unknown_peer));
  const std::string text = troupe::to_exception(problem).what();
  BOOST_TEST(text.starts_with("no way to the host: Too many open files"), text);
}

BOOST_AUTO_TEST_SUITE_END()
