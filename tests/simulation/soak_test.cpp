// SPDX-License-Identifier: BSD-3-Clause
#include "simulation/soak.hpp"

#include <cstdint>
#include <random>
#include <string>

#include <boost/test/unit_test.hpp>

using namespace troupe::simulation;

BOOST_AUTO_TEST_SUITE(soak_of_simulated_clusters)

BOOST_AUTO_TEST_CASE(no_promise_is_broken_whatever_goes_wrong) {  // SK-1, SK-2, SK-3, SK-4, SF-1
  soak_report all;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const auto report = soak(seed).run(1);
    BOOST_TEST_REQUIRE(report.wrong == "", report.text());
    BOOST_TEST(report.hours >= 1);
    all += report;
  }
  BOOST_TEST_MESSAGE(all.text());
  BOOST_TEST(all.faults > 20 * 50u);
  BOOST_TEST(all.passes > 20 * 50u);
  BOOST_TEST(all.succeeded > all.passes / 2);
  BOOST_TEST(all.succeeded < all.passes);
}

BOOST_AUTO_TEST_CASE(one_seed_gives_one_run_and_an_event_its_begin) {  // SK-5
  const auto run = [](std::uint64_t seed, std::uint64_t until_event) { return soak(seed).run(0.5, until_event); };
  const auto first = run(3, 0);
  const auto again = run(3, 0);
  BOOST_TEST(again.events == first.events);
  BOOST_TEST(again.last == first.last, boost::test_tools::per_element());
  BOOST_TEST(run(4, 0).events != first.events);
  const auto half = run(3, first.events / 2);
  BOOST_TEST(half.events == first.events / 2);
  BOOST_TEST(half.hours < first.hours);
  BOOST_TEST(run(3, half.events).last == half.last, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_broken_promise_is_found_and_names_seed_and_event) {
  soak broken(5);
  broken.spoil([](const pass_model& which) { return which.number_of_context() == 7; });
  const auto report = broken.run(1);
  BOOST_TEST(report.wrong.find("WG-1, PA-1") != std::string::npos, report.wrong);
  BOOST_TEST(report.text().find("seed 5, event " + std::to_string(report.events) + ": WG-1") == 0u);
  BOOST_TEST(!report.last.empty());
  soak again(5);
  again.spoil([](const pass_model& which) { return which.number_of_context() == 7; });
  BOOST_TEST(again.run(1).text() == report.text());
}

BOOST_AUTO_TEST_CASE(a_fault_is_over_after_a_while_and_all_of_them_after_healing) {  // SF-1
  auto how = troupe::test::simulated_cluster::settings::meshed(5);
  troupe::test::simulated_cluster all(how);
  std::mt19937_64 random(2);
  soak_faults faults(all, random);
  all.pass(4 * all.interval_ns());
  const auto in_trouble = [&] {
    std::size_t result = 0;
    for (std::size_t node = 0; node < all.size(); ++node) result += faults.last_trouble(node) == all.now_ns();
    return result;
  };
  BOOST_TEST(in_trouble() == 0u);
  for (int i = 0; i < 30; ++i) faults.go_wrong();
  BOOST_TEST(faults.begun() > 10u);
  BOOST_TEST(in_trouble() > 1u);
  all.pass(61 * all.interval_ns());
  BOOST_TEST(in_trouble() == 0u);
  for (int i = 0; i < 30; ++i) faults.go_wrong();
  faults.heal();
  all.pass(1);
  BOOST_TEST(in_trouble() == 0u);
  for (std::size_t node = 0; node < all.size(); ++node) BOOST_TEST(all.network().is_running(node));
}

BOOST_AUTO_TEST_SUITE_END()
