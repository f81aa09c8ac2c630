// SPDX-License-Identifier: BSD-3-Clause
#include "actors/calls/simulated_calls.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_SUITE(calls_between_simulated_nodes, *boost::unit_test::label("explored"))

namespace {

using troupe::test::simulated_calls;

constexpr std::int64_t ms = 1'000'000;

/// Calls, nested ones too, and what may go wrong around them.
void live(simulated_calls& all, std::size_t nodes, int steps, bool in_peace) {
  const auto drawn = [&] { return static_cast<std::size_t>(all.below(static_cast<std::int64_t>(nodes))); };
  for (; steps > 0; --steps) {
    all.call_from(drawn());
    all.pass(all.below(5 * ms));
    if (in_peace) continue;
    const auto one = drawn();
    const auto other = drawn();
    switch (all.below(24)) {
      case 0:
        all.network().disconnect(one, other);
        break;
      case 1:
        all.freeze(one);
        break;
      case 2:
        all.thaw(one);
        break;
      case 3:
        all.restart(one);
        break;
      case 4:
        all.network().cut_way(one, other);
        break;
      case 5:
        all.network().mend_way(one, other);
        break;
      case 6:
        all.release_context(one, 1);
        break;
      default:
        break;
    }
  }
}

}  // namespace

// LC-1 to LC-6, OG-3, HW-3, HW-4, PW-1
BOOST_AUTO_TEST_CASE(every_call_ends_by_its_deadline_and_leaves_nothing_whatever_goes_wrong) {
  std::size_t answered = 0;
  std::size_t failed = 0;
  std::size_t deepest = 0;
  for (std::uint64_t seed = 1; seed <= 2'000; ++seed) {
    BOOST_TEST_CONTEXT("seed " << seed) {
      simulated_calls all({.nodes = 2 + seed % 3, .seed = seed});
      live(all, 2 + seed % 3, 40, false);
      all.settle();
      BOOST_TEST_REQUIRE(all.wrong_at_end() == "");
      answered += all.counted().answered;
      failed += all.counted().failed;
      deepest = std::max(deepest, all.counted().deepest);
    }
  }
  BOOST_TEST_MESSAGE(answered << " calls were answered, " << failed << " failed, up to " << deepest << " calls inside another");
  BOOST_TEST(answered > 10'000u);
  BOOST_TEST(failed > 10'000u);
  BOOST_TEST(deepest >= 5u);
}

// PW-1: calls that lead back to the node that made them never wait for each other's workers.
BOOST_AUTO_TEST_CASE(nested_calls_all_get_their_workers_where_nothing_goes_wrong) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    BOOST_TEST_CONTEXT("seed " << seed) {
      simulated_calls all({.nodes = 3, .seed = seed, .longest_ns = 1'000'000 * ms});
      live(all, 3, 40, true);
      all.settle();
      BOOST_TEST_REQUIRE(all.wrong_at_end() == "");
      BOOST_TEST_REQUIRE(all.counted().last_end_ns < 10'000 * ms);  // long before most deadlines
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
