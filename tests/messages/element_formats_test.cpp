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
#include <troupe/messages/int8_blocks.hpp>

#include "float_samples.hpp"
#include "plain_codec.hpp"

using namespace troupe;
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

BOOST_AUTO_TEST_CASE(bfloat16_has_the_bits_of_libtorch) {  // EF-1
  const auto from = interesting_values();
  std::vector<std::uint16_t> narrow(from.size());
  std::vector<float> wide(from.size());
  narrow_bfloat16(from.data(), narrow.data(), from.size());
  widen_bfloat16(narrow.data(), wide.data(), from.size());
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < from.size(); ++i) {
    const c10::BFloat16 expected(from[i]);
    wrong += narrow[i] != expected.x || bits_of(wide[i]) != bits_of(float(expected));
  }
  BOOST_TEST(wrong == 0u);
}

BOOST_AUTO_TEST_CASE(bfloat16_says_whether_a_finite_element_became_infinite) {  // EF-3
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

BOOST_AUTO_TEST_CASE(float16_has_the_bits_of_libtorch) {  // EF-1
  auto from = interesting_values();
  std::erase_if(from, [](float x) { return std::isnan(x); });  // products of NaN may have other bits
  std::vector<std::uint16_t> narrow(from.size());
  std::vector<float> wide(from.size());
  narrow_float16(from.data(), narrow.data(), from.size(), 1);
  widen_float16(narrow.data(), wide.data(), from.size(), 1, 1);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < from.size(); ++i) {
    const c10::Half expected(from[i]);
    wrong += narrow[i] != expected.x || bits_of(wide[i]) != bits_of(float(expected));
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

BOOST_AUTO_TEST_CASE(conversions_write_nothing_behind_the_last_element) {
  constexpr std::size_t count = 300;
  const std::vector<float> from(count + 1, 2.0F);
  std::vector<std::uint16_t> narrow(count + 1, 7);
  std::vector<float> wide(count + 1, 7.0F);
  narrow_bfloat16(from.data(), narrow.data(), count);
  BOOST_TEST(narrow.back() == 7);
  widen_bfloat16(narrow.data(), wide.data(), count);
  BOOST_TEST(wide.back() == 7.0F);
  narrow_float16(from.data(), narrow.data(), count, 1);
  BOOST_TEST(narrow.back() == 7);
  widen_float16(narrow.data(), wide.data(), count, 1, 1);
  BOOST_TEST(wide.back() == 7.0F);
  std::vector<std::int8_t> codes(count + 1, 7);
  std::vector<float> scales(blocks_of(count) + 1, 7.0F);
  std::vector<float> residual(count + 1, 7.0F);
  BOOST_TEST(quantise(from.data(), residual.data(), codes.data(), scales.data(), count));
  BOOST_TEST(codes.back() == 7);
  BOOST_TEST(scales.back() == 7.0F);
  BOOST_TEST(residual.back() == 7.0F);
  dequantise(codes.data(), scales.data(), wide.data(), count);
  BOOST_TEST(wide.back() == 7.0F);
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

BOOST_AUTO_TEST_CASE(int8_has_the_bits_of_the_plain_codec) {  // EF-2, FB-1, BC-1, BC-2
  std::mt19937 random(11);
  for (const std::size_t count : {0u, 1u, 255u, 256u, 257u, 1000u, 3000u})
    for (const float size : {1e-40F, 1e-30F, 1.0F, 1e30F}) {
      const auto from = test::gradients(count, size, random);
      const auto before = test::gradients(count, size / 100, random);
      const test::plain_codec expected(from, before);
      auto residual = before;
      std::vector<std::int8_t> to(count);
      std::vector<float> scales(blocks_of(count));
      std::vector<float> back(count);
      BOOST_REQUIRE(quantise(from.data(), residual.data(), to.data(), scales.data(), count));
      dequantise(to.data(), scales.data(), back.data(), count);
      BOOST_TEST((to == expected.codes));
      BOOST_TEST((test::bits_of(scales) == test::bits_of(expected.scales)));
      BOOST_TEST((test::bits_of(residual) == test::bits_of(expected.residual)));
      BOOST_TEST((test::bits_of(back) == test::bits_of(expected.decoded)));
      const test::plain_codec alone(from, std::vector<float>(count, 0));
      BOOST_REQUIRE(quantise(from.data(), nullptr, to.data(), scales.data(), count));
      BOOST_TEST((to == alone.codes));
    }
}

BOOST_AUTO_TEST_CASE(int8_takes_the_largest_and_the_least_elements) {  // BC-3, BC-5
  const float largest = std::numeric_limits<float>::max();
  for (const float x : {largest, std::nextafter(largest, 0.0F), 0x1p-119F, 0x1p-143F, 0x1p-149F, 0.0F}) {
    const std::vector<float> from{x, -x, x / 2};
    const test::plain_codec expected(from, {0, 0, 0});
    std::int8_t to[3];
    float scale = 0;
    float back[3];
    BOOST_REQUIRE(quantise(from.data(), nullptr, to, &scale, 3));
    dequantise(to, &scale, back, 3);
    BOOST_TEST(bits_of(scale) == bits_of(expected.scales[0]));
    for (std::size_t i = 0; i < 3; ++i) BOOST_TEST((back[i] == expected.decoded[i] && std::isfinite(back[i])));
  }
}

BOOST_AUTO_TEST_CASE(int8_says_that_an_element_is_not_finite) {  // EF-3
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
}
