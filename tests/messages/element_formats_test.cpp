// SPDX-License-Identifier: BSD-3-Clause
#include <boost/test/unit_test.hpp>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <troupe/messages/element_formats.hpp>

using namespace troupe::element_formats;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

/// Random bits, and the values on both sides of each rounding and of each limit of the formats.
std::vector<float> interesting_values() {
  std::vector<float> all{0.0F, -0.0F, 1.0F, -1.0F, infinity, -infinity, std::numeric_limits<float>::quiet_NaN()};
  for (const float x : {65504.0F, 65519.0F, 65520.0F, 0x1p-14F, 0x1p-24F, 0x1p-25F, 0x1.8p-25F, 3.3895314e38F, 3.4e38F,
                        0x1p-126F, 0x1p-149F, 0x1.01p0F, 0x1.03p0F, 0x1.002p0F, 0x1.006p0F})
    for (const float near : {x, std::nextafter(x, infinity), std::nextafter(x, 0.0F)}) all.insert(all.end(), {near, -near});
  std::mt19937 random(7);
  for (int i = 0; i < 200'000; ++i) all.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
  std::normal_distribution<float> normal;
  for (int i = 0; i < 100'000; ++i) all.push_back(normal(random) * std::ldexp(1.0F, static_cast<int>(random() % 40) - 25));
  return all;
}

}  // namespace

BOOST_AUTO_TEST_CASE(bfloat16_has_the_bits_of_libtorch) {  // EF-1, EF-2
  const auto from = interesting_values();
  std::vector<std::uint16_t> narrow(from.size());
  std::vector<float> wide(from.size());
  narrow_bfloat16(from.data(), narrow.data(), from.size());
  widen_bfloat16(narrow.data(), wide.data(), from.size());
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < from.size(); ++i) {
    const c10::BFloat16 expected(from[i]);
    if (std::isnan(from[i]))
      wrong += !std::isnan(wide[i]);
    else
      wrong +=
        narrow[i] != expected.x || std::bit_cast<std::uint32_t>(wide[i]) != std::bit_cast<std::uint32_t>(float(expected));
  }
  BOOST_TEST(wrong == 0u);
}

BOOST_AUTO_TEST_CASE(bfloat16_says_whether_a_finite_element_became_infinite) {  // EF-1
  std::uint16_t to[3];
  const auto fits = [&](float x) {
    const float from[] = {1.0F, x, -2.0F};
    return narrow_bfloat16(from, to, 3);
  };
  BOOST_TEST(fits(3.3895e38F));
  BOOST_TEST(fits(infinity));
  BOOST_TEST(fits(std::numeric_limits<float>::quiet_NaN()));
  BOOST_TEST(!fits(3.4e38F));
  BOOST_TEST(!fits(std::numeric_limits<float>::lowest()));
}

BOOST_AUTO_TEST_CASE(float16_has_the_bits_of_libtorch) {  // EF-1, EF-2
  auto from = interesting_values();
  std::erase_if(from, [](float x) { return !(std::abs(x) < 65520); });  // also NaN
  std::vector<std::uint16_t> narrow(from.size());
  std::vector<float> wide(from.size());
  narrow_float16(from.data(), narrow.data(), from.size(), 1);
  widen_float16(narrow.data(), wide.data(), from.size(), 1, 1);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < from.size(); ++i) {
    const c10::Half expected(from[i]);
    wrong += narrow[i] != expected.x || std::bit_cast<std::uint32_t>(wide[i]) != std::bit_cast<std::uint32_t>(float(expected));
  }
  BOOST_TEST(wrong == 0u);
}

BOOST_AUTO_TEST_CASE(float16_multiplies_first) {
  const float from[] = {3.0F, -0x1p-20F};
  std::uint16_t narrow[2];
  float wide[2];
  narrow_float16(from, narrow, 2, 0x1p10F);
  BOOST_TEST(narrow[0] == c10::Half(3072.0F).x);
  widen_float16(narrow, wide, 2, 0x1p-5F, 0x1p-5F);
  BOOST_TEST(wide[0] == from[0]);
  BOOST_TEST(wide[1] == from[1]);
}

BOOST_AUTO_TEST_CASE(the_largest_magnitude_is_found_wherever_it_is) {
  std::vector<float> from(1000, 0.5F);
  for (const std::size_t at : {0u, 499u, 999u}) {
    from[at] = -2;
    BOOST_TEST(largest_magnitude(from.data(), from.size()) == std::bit_cast<std::uint32_t>(2.0F));
    from[at] = 0.5F;
  }
  from[998] = std::numeric_limits<float>::quiet_NaN();
  BOOST_TEST(largest_magnitude(from.data(), from.size()) > std::bit_cast<std::uint32_t>(infinity));
}

BOOST_AUTO_TEST_CASE(int8_is_what_plain_arithmetic_says) {  // EF-3
  std::mt19937 random(11);
  std::normal_distribution<float> normal;
  for (const std::size_t count : {1u, 255u, 256u, 257u, 1000u}) {
    std::vector<float> from(count);
    for (auto& x : from) x = normal(random) * std::ldexp(1.0F, static_cast<int>(random() % 60) - 30);
    std::vector<std::int8_t> to(count);
    std::vector<float> scales(blocks_of(count));
    std::vector<float> back(count);
    BOOST_REQUIRE(quantise(from.data(), nullptr, to.data(), scales.data(), count));
    dequantise(to.data(), scales.data(), back.data(), count);
    for (std::size_t b = 0; b < scales.size(); ++b) {
      float largest = 0;
      const auto end = std::min(count, (b + 1) * block);
      for (auto i = b * block; i < end; ++i) largest = std::max(largest, std::abs(from[i]));
      BOOST_TEST(scales[b] == largest / 127);
      for (auto i = b * block; i < end; ++i) {
        const auto whole = std::nearbyint(from[i] * (127 / largest));
        BOOST_TEST(static_cast<float>(to[i]) == whole);
        BOOST_TEST(back[i] == whole * scales[b]);
        BOOST_TEST(std::abs(back[i] - from[i]) <= largest / 253);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(int8_rounds_ties_to_even) {
  const float from[] = {127, 0.5F, 1.5F, 2.5F, -0.5F, -1.5F, -2.5F};
  std::int8_t to[7];
  float scale = 0;
  BOOST_REQUIRE(quantise(from, nullptr, to, &scale, 7));
  BOOST_TEST(scale == 1);
  const std::vector<int> expected{127, 0, 2, 2, 0, -2, -2};
  BOOST_TEST(std::vector<int>(to, to + 7) == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(int8_leaves_in_the_residual_what_it_did_not_send) {  // EF-3
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  std::vector<float> from(700);
  std::vector<float> residual(700);
  for (auto& x : from) x = normal(random);
  for (auto& x : residual) x = normal(random) / 100;
  const auto before = residual;
  std::vector<std::int8_t> to(700);
  std::vector<float> scales(3);
  std::vector<float> back(700);
  BOOST_REQUIRE(quantise(from.data(), residual.data(), to.data(), scales.data(), 700));
  dequantise(to.data(), scales.data(), back.data(), 700);
  for (std::size_t i = 0; i < 700; ++i) BOOST_TEST(std::abs(back[i] + residual[i] - (from[i] + before[i])) < 1e-6F);
}

BOOST_AUTO_TEST_CASE(int8_refuses_what_is_not_finite_and_takes_zeros) {  // EF-3
  std::vector<float> from(300, 1.0F);
  std::vector<float> residual(300, 0.0F);
  std::vector<std::int8_t> to(300);
  std::vector<float> scales(2);
  for (const float bad : {infinity, -infinity, std::numeric_limits<float>::quiet_NaN()}) {
    from[299] = bad;
    BOOST_TEST(!quantise(from.data(), nullptr, to.data(), scales.data(), 300));
    from[299] = 1;
    residual[7] = bad;
    BOOST_TEST(!quantise(from.data(), residual.data(), to.data(), scales.data(), 300));
    residual[7] = 0;
  }
  for (const float little : {0.0F, 0x1p-149F, 0x1p-120F}) {
    from.assign(300, little);
    BOOST_REQUIRE(quantise(from.data(), nullptr, to.data(), scales.data(), 300));
    BOOST_TEST(scales[0] == 0);
    BOOST_TEST(to[0] == 0);
  }
}
