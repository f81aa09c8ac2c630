// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/support/host_lookup.hpp>

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "actors/loopback_nodes.hpp"
#include "actors/slow_names.hpp"
#include "support/no_more_threads.hpp"
#include "support/thread_count.hpp"

using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(look_ups_of_names)

namespace {

using troupe::support::name_lookups;
using troupe::test::becomes_true;
using troupe::test::slow_names;
using troupe::test::threads_of;

/// Looks a name up. The future gets the outcome.
std::future<name_lookups::outcome> look_up(name_lookups& all, const std::string& name, name_lookups::ticket* which = nullptr) {
  auto told = std::make_shared<std::promise<name_lookups::outcome>>();
  const auto ticket = all.add(name, 1, [told](name_lookups::outcome result) { told->set_value(std::move(result)); });
  if (which != nullptr) *which = ticket;
  return told->get_future();
}

}  // namespace

BOOST_AUTO_TEST_CASE(block_a_bounded_number_of_threads_which_end) {  // NU-1, NU-2
  const auto before = threads_of();
  name_lookups all;
  std::vector<std::future<name_lookups::outcome>> found;
  {
    const slow_names slow;
    for (int i = 0; i < 40; ++i) found.push_back(look_up(all, "slow"));
    BOOST_TEST(becomes_true([] { return slow_names::blocked() == static_cast<int>(name_lookups::most_threads); }));
    BOOST_TEST(threads_of() <= before + name_lookups::most_threads);
  }
  for (auto& each : found) {
    BOOST_REQUIRE((each.wait_for(20s) == std::future_status::ready));
    BOOST_TEST(each.get().found.addresses.get() != nullptr);
  }
  BOOST_TEST(becomes_true([&] { return threads_of() <= before; }), threads_of() << " threads, before " << before);
}

BOOST_AUTO_TEST_CASE(leave_out_a_name_that_was_given_up) {  // NU-3
  name_lookups all;
  std::vector<std::future<name_lookups::outcome>> found;
  int begun = 0;
  {
    const slow_names slow;
    begun = slow_names::begun();
    for (std::size_t i = 0; i < name_lookups::most_threads; ++i) found.push_back(look_up(all, "slow"));
    BOOST_TEST(becomes_true([] { return slow_names::blocked() == static_cast<int>(name_lookups::most_threads); }));
    name_lookups::ticket which = 0;
    auto given_up = look_up(all, "slow given up", &which);
    found.push_back(look_up(all, "slow last"));
    all.give_up(which);
    BOOST_CHECK_THROW(given_up.get(), std::future_error);  // nothing is left of its `done`
  }
  for (auto& each : found) BOOST_REQUIRE((each.wait_for(20s) == std::future_status::ready));
  BOOST_TEST(slow_names::begun() - begun == static_cast<int>(name_lookups::most_threads) + 1);
}

BOOST_AUTO_TEST_CASE(say_that_there_is_no_thread_only_if_none_runs) {
  name_lookups all;
  {
    const troupe::test::no_more_threads none;
    BOOST_CHECK_THROW(look_up(all, "localhost"), std::system_error);
  }
  std::optional<slow_names> slow(std::in_place);
  auto first = look_up(all, "slow");
  BOOST_TEST(becomes_true([] { return slow_names::blocked() == 1; }));
  std::future<name_lookups::outcome> second;
  {
    const troupe::test::no_more_threads none;
    second = look_up(all, "slow");
  }
  slow.reset();
  BOOST_TEST((second.wait_for(20s) == std::future_status::ready));
}

BOOST_AUTO_TEST_CASE(outlive_the_object_that_began_them) {  // NU-3
  std::optional<slow_names> slow(std::in_place);
  std::future<name_lookups::outcome> found;
  {
    name_lookups all;
    found = look_up(all, "slow");
    BOOST_TEST(becomes_true([] { return slow_names::blocked() == 1; }));
  }
  slow.reset();
  BOOST_TEST((found.wait_for(20s) == std::future_status::ready));
}

BOOST_AUTO_TEST_SUITE_END()
