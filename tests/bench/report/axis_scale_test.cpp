// SPDX-License-Identifier: BSD-3-Clause
#include <boost/test/unit_test.hpp>

#include <stdexcept>
#include <string>
#include <vector>

#include "bench/report/axis_scale.hpp"
#include "bench/report/figure_text.hpp"

using namespace troupe::bench;

namespace {

std::string ticks_of(const std::vector<double>& values, const plot_axis& kind, bool wide = false) {
  std::string all;
  for (const auto& each : axis_scale(values, kind, 0, 100, wide).ticks()) all += (all.empty() ? "" : " | ") + each.text;
  return all;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(axes)

BOOST_AUTO_TEST_CASE(a_wide_range_has_powers_of_ten) {
  BOOST_TEST(ticks_of({1, 5000}, {"senders", "", true}) == "1 | 10 | 100 | 1,000");
  BOOST_TEST(ticks_of({1, 3e6}, {"passes", "", true}) == "1 | 10 | 100 | 1 k | 10 k | 100 k | 1 M");
  BOOST_TEST(ticks_of({1e-6, 1e12}, {"passes", "", true}).size() < 80);
}

BOOST_AUTO_TEST_CASE(a_narrow_range_has_round_values_between) {
  BOOST_TEST(ticks_of({3, 300}, {"nodes", "", true}) == "5 | 10 | 20 | 50 | 100 | 200");
  BOOST_TEST(ticks_of({30, 45}, {"nodes", "", true}) == "30 | 35 | 40 | 45");
}

BOOST_AUTO_TEST_CASE(times_and_memory_have_the_unit_that_suits_them) {
  BOOST_TEST(ticks_of({0.5, 20'000}, {"time", "us", true}) == "1 µs | 10 µs | 100 µs | 1 ms | 10 ms");
  BOOST_TEST(ticks_of({1, 64 << 20}, {"size", "bytes", true}) == "1 B | 32 B | 1 KiB | 32 KiB | 1 MiB | 32 MiB");
  BOOST_TEST(ticks_of({1, 64}, {"size", "KiB", true}) == "1 KiB | 2 KiB | 4 KiB | 8 KiB | 16 KiB | 32 KiB | 64 KiB");
  BOOST_TEST(ticks_of({0, 5000}, {"time", "us", false}) == "0 | 1 | 2 | 3 | 4 | 5");
  BOOST_TEST(axis_scale({0, 5000}, {"time", "us", false}, 0, 1, false).title() == "time (ms)");
  BOOST_TEST(axis_scale({1, 5000}, {"time", "us", true}, 0, 1, false).title() == "time");
  BOOST_TEST(axis_scale({1, 5000}, {"rate", "1/s", true}, 0, 1, false).title() == "rate (1/s)");
}

BOOST_AUTO_TEST_CASE(powers_of_two_are_marked_as_such) {
  BOOST_TEST(ticks_of({2, 4, 8, 16, 32, 64}, {"nodes", "", true}) == "2 | 4 | 8 | 16 | 32 | 64");
  BOOST_TEST(ticks_of({1, 1024}, {"functions", "", true}) == "1 | 4 | 16 | 64 | 256 | 1,024");
}

BOOST_AUTO_TEST_CASE(a_logarithmic_axis_has_a_place_for_0_beside_it) {
  const axis_scale with({0, 10, 1000}, {"work", "us", true}, 0, 100, false);
  BOOST_TEST(with.has_zero());
  BOOST_TEST(with.at(0) == 0);
  BOOST_TEST(with.at(10) == 10);
  BOOST_TEST(with.at(100) == 55, boost::test_tools::tolerance(1e-9));
  BOOST_TEST(with.at(1000) == 100);
  BOOST_TEST(with.ticks().front().text == "0");
  const axis_scale without({10, 1000}, {"work", "us", true}, 0, 100, false);
  BOOST_TEST(!without.has_zero());
  BOOST_TEST(without.at(10) == 0);
}

BOOST_AUTO_TEST_CASE(values_outside_are_at_the_ends) {
  const axis_scale linear({10, 20}, {"x", "", false}, 100, 200, false);
  BOOST_TEST(linear.at(15) == 150);
  BOOST_TEST(linear.at(0) == 100);
  BOOST_TEST(linear.at(90) == 200);
  const axis_scale log({10, 1000}, {"x", "", true}, 100, 200, false);
  BOOST_TEST(log.at(1) == 100);
  BOOST_TEST(log.at(1e9) == 200);
}

BOOST_AUTO_TEST_CASE(a_wide_axis_begins_and_ends_at_round_values) {
  BOOST_TEST(ticks_of({140, 143}, {"memory", "", false}, true) == "0 | 50 | 100 | 150");
  BOOST_TEST(ticks_of({30, 3000}, {"time", "", true}, true) == "20 | 50 | 100 | 200 | 500 | 1,000 | 2,000 | 5,000");
}

BOOST_AUTO_TEST_CASE(an_axis_ends_at_the_round_value_next_to_its_last) {
  BOOST_TEST(axis_scale({0, 99.9}, {"percentile", "%", false}, 0, 100, false).ticks().back().text == "100");
}

BOOST_AUTO_TEST_CASE(one_value_alone_is_between_the_ends) {
  BOOST_TEST(axis_scale({7}, {"x", "", true}, 0, 100, false).at(7) == 50, boost::test_tools::tolerance(1e-9));
  BOOST_TEST(axis_scale({7}, {"x", "", false}, 0, 100, false).at(7) == 50);
  BOOST_TEST(axis_scale({0}, {"x", "", false}, 0, 100, false).ticks().size() > 1);
  BOOST_CHECK_THROW(axis_scale({0}, {"x", "", true}, 0, 100, false), std::runtime_error);
}

BOOST_AUTO_TEST_CASE(figures_have_three_digits_and_their_unit) {
  BOOST_TEST(number_text(0.1234) == "0.123");
  BOOST_TEST(number_text(4.5678) == "4.57");
  BOOST_TEST(number_text(78.91) == "78.9");
  BOOST_TEST(number_text(1234567.8) == "1,234,568");
  BOOST_TEST(number_text(-1234) == "-1,234");
  BOOST_TEST(number_text(0.00736) == "0.0074");
  BOOST_TEST(number_text(0) == "0");
  BOOST_TEST(value_text(65536, "bytes") == "64 KiB");
  BOOST_TEST(value_text(1250, "us") == "1.25 ms");
  BOOST_TEST(value_text(100'000 * (1 + 1e-12), "us") == "100 ms");
  BOOST_TEST(value_text(0, "us") == "0 µs");
  BOOST_TEST(value_text(317, "tokens/s") == "317 tokens/s");
  BOOST_TEST(unit_text("us") == "µs");
  BOOST_TEST(unit_text("us/function") == "µs/function");
  BOOST_TEST(unit_text("us p99") == "µs p99");
  BOOST_TEST(unit_text("users") == "users");
  BOOST_TEST(escaped("a<b> & \"c\"") == "a&lt;b&gt; &amp; &quot;c&quot;");
}

BOOST_AUTO_TEST_SUITE_END()
