// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/network/address_race.hpp>

#include <sys/socket.h>

#include <vector>

#include <boost/test/unit_test.hpp>
#include <caf/sec.hpp>

#include <troupe/messages/caf_error.hpp>

BOOST_AUTO_TEST_SUITE(address_races)

namespace {

using troupe::network::address_race;
using troupe::network::by_turns;

/// The families of the addresses by turns, of a list in this order.
std::vector<int> turns(const std::vector<int>& families) {
  std::vector<addrinfo> list(families.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    list[i].ai_family = families[i];
    list[i].ai_next = i + 1 < list.size() ? &list[i + 1] : nullptr;
  }
  std::vector<int> result;
  for (const auto* each : by_turns(list.empty() ? nullptr : list.data())) result.push_back(each->ai_family);
  return result;
}

struct fixture {
  troupe::support::host_lookup look_up(const char* address) {
    return std::move(troupe::support::read_address(address, 1).value());
  }
  address_race race{troupe::gate::connection_gate(troupe::gate::connection_gate::rule::anyone)};
  address_race::clock::time_point now = address_race::clock::now();
};

}  // namespace

BOOST_AUTO_TEST_CASE(take_families_by_turns_and_begin_with_the_first_address) {
  constexpr int v4 = AF_INET;
  constexpr int v6 = AF_INET6;
  BOOST_TEST((turns({}).empty()));
  BOOST_TEST((turns({v4}) == std::vector{v4}));
  BOOST_TEST((turns({v6, v6, v6, v4, v4}) == std::vector{v6, v4, v6, v4, v6}));
  BOOST_TEST((turns({v4, v6, v6, v6}) == std::vector{v4, v6, v6, v6}));
}

BOOST_FIXTURE_TEST_CASE(tell_a_name_without_an_address_from_one_that_could_not_be_looked_up, fixture) {  // AR-2
  troupe::support::host_lookup none;
  none.problem = "no address";
  BOOST_TEST((race.begin(std::move(none), now) == address_race::verdict::nobody));
  BOOST_TEST((race.problem() == troupe::errc::misuse));
  troupe::support::host_lookup later;
  later.problem = "no answer";
  later.temporary = true;
  address_race other{troupe::gate::connection_gate(troupe::gate::connection_gate::rule::anyone)};
  BOOST_TEST((other.begin(std::move(later), now) == address_race::verdict::nobody));
  BOOST_TEST((other.problem() == troupe::errc::unknown_peer));
}

BOOST_FIXTURE_TEST_CASE(have_nothing_more_to_begin_after_the_last_address, fixture) {  // AR-1
  BOOST_TEST((race.begin(look_up("127.0.0.1"), now) == address_race::verdict::undecided));
  BOOST_TEST((race.next_look() == address_race::clock::time_point::max()));
  BOOST_TEST((race.look(now + address_race::head_start) == address_race::verdict::undecided));
  BOOST_TEST(race.probes().size() == 1U);
}

BOOST_AUTO_TEST_SUITE_END()
