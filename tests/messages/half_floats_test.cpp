// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/messages/half_floats.hpp>

#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <random>
#include <vector>

#include <ATen/Context.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

using namespace troupe;
using element_formats::bits_of;
using element_formats::float_of;

namespace {

/// Compares one float with libtorch's conversions. Counts the differences, because a check for each value takes too long.
std::size_t differences(std::uint32_t bits) {
  const float value = float_of(bits);
  return (element_formats::to_bfloat16(value) != c10::BFloat16(value).x) +
         (element_formats::to_float16(value) != c10::Half(value).x);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(half_floats)

BOOST_AUTO_TEST_CASE(floats_are_rounded_as_libtorch_rounds_them) {  // HF-1
  std::size_t wrong = 0;
  // Each sign, exponent and begin of a mantissa, with ends that lie around the ties of all widths.
  for (std::uint32_t upper = 0; upper < 0x10000; ++upper) {
    for (const std::uint32_t lower : {0u, 1u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu}) wrong += differences(upper << 16 | lower);
    for (std::uint32_t width = 0; width < 16; ++width)
      for (const std::uint32_t end : {-1, 0, 1}) wrong += differences((upper << 16) + (1u << width) + end);
  }
  BOOST_TEST(wrong == 0u);
}

BOOST_AUTO_TEST_CASE(ties_of_denormal_halves_go_to_the_even_one) {  // HF-1
  std::size_t wrong = 0;
  for (std::uint32_t half = 0; half < 0x800; ++half) {  // each denormal number and the first normal ones, in units of 2^-24
    const float tie = (static_cast<float>(half) + 0.5F) * 0x1p-24F;
    for (const std::uint32_t bits : {bits_of(tie) - 1, bits_of(tie), bits_of(tie) + 1})
      wrong += differences(bits) + differences(bits | element_formats::sign_bit);
  }
  BOOST_TEST(wrong == 0u);
}

BOOST_AUTO_TEST_CASE(random_floats_are_rounded_as_libtorch_rounds_them) {  // HF-1
  std::mt19937 random(1);
  std::size_t wrong = 0;
  for (int i = 0; i < 1'000'000; ++i) wrong += differences(static_cast<std::uint32_t>(random()));
  BOOST_TEST(wrong == 0u);
}

BOOST_AUTO_TEST_CASE(all_16_bit_floats_are_widened_as_libtorch_widens_them) {  // HF-1
  std::size_t wrong = 0;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto each = static_cast<std::uint16_t>(bits);
    wrong += bits_of(element_formats::from_bfloat16(each)) != bits_of(c10::BFloat16(each, c10::BFloat16::from_bits()));
    wrong += bits_of(element_formats::from_float16(each)) != bits_of(c10::Half(each, c10::Half::from_bits()));
  }
  BOOST_TEST(wrong == 0u);
}

BOOST_AUTO_TEST_CASE(a_thread_that_flushes_denormal_numbers_gets_the_same_bits) {  // HF-2
  const auto all_bits = [] {
    std::vector<std::uint32_t> found;
    for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
      const float value = float_of(bits << 16 | 0x8001);
      found.push_back(bits_of(element_formats::from_bfloat16(static_cast<std::uint16_t>(bits))));
      found.push_back(bits_of(element_formats::from_float16(static_cast<std::uint16_t>(bits))));
      found.push_back(element_formats::to_bfloat16(value));
      found.push_back(element_formats::to_float16(value));
    }
    return found;
  };
  const auto expected = all_bits();
  if (!at::globalContext().setFlushDenormal(true)) return;  // this CPU can't
  const auto flushed = all_bits();
  at::globalContext().setFlushDenormal(false);
  BOOST_TEST((flushed == expected));
}

BOOST_AUTO_TEST_CASE(numbers_that_are_known_by_heart) {  // HF-1, HF-2
  using namespace element_formats;
  BOOST_TEST(to_bfloat16(1.0F) == 0x3f80);
  BOOST_TEST(to_bfloat16(3.4e38F) == 0x7f80);
  BOOST_TEST(to_bfloat16(float_of(0xffc00001)) == 0x7fc0);
  BOOST_TEST(to_float16(1.0F) == 0x3c00);
  BOOST_TEST(to_float16(-65504.0F) == 0xfbff);
  BOOST_TEST(to_float16(65519.0F) == 0x7bff);
  BOOST_TEST(to_float16(65520.0F) == 0x7c00);
  BOOST_TEST(to_float16(0x1p-24F) == 1);
  BOOST_TEST(to_float16(0x1p-25F) == 0);
  BOOST_TEST(to_float16(-0.0F) == 0x8000);
  BOOST_TEST(to_float16(float_of(0xff800001)) == 0xfe00);
}

BOOST_AUTO_TEST_SUITE_END()
