// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/devices/cuda/block_codec.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "grid.hpp"
#include "messages/float_samples.hpp"
#include "messages/plain_codec.hpp"

using namespace troupe;
using namespace troupe::test;
using element_formats::float_of;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();
constexpr float largest_float = std::numeric_limits<float>::max();
constexpr std::size_t margin = 300;  // elements on both sides that nobody may touch

template <class T>
std::vector<T> inner(const std::vector<T>& all, T untouched, std::size_t shift) {
  const auto before = static_cast<std::ptrdiff_t>(margin + shift);
  const std::vector<T> front(all.begin(), all.begin() + before);
  const std::vector<T> back(all.end() - margin, all.end());
  BOOST_TEST((front == std::vector<T>(margin + shift, untouched)), "something before the array was written");
  BOOST_TEST((back == std::vector<T>(margin, untouched)), "something behind the array was written");
  return std::vector<T>(all.begin() + before, all.end() - margin);
}

struct result {
  std::vector<std::int8_t> codes;
  std::vector<float> scales;
  std::vector<float> residual;
  std::vector<float> decoded;
};

/// Runs the kernels' bodies over their grids. Without `residual`, none is given to them. The elements begin `shift` elements
/// behind an address that is aligned for quads.
result over_the_grid(const std::vector<float>& elements, const std::vector<float>* residual, unsigned seed = 1,
                     std::size_t shift = 0) {
  const std::size_t count = elements.size();
  const std::size_t blocks_of_codes = (count + 255) / 256;
  const std::size_t padded = (count + 3) / 4 * 4;
  std::vector<std::int8_t> bytes(padded + 4 * blocks_of_codes + 2 * margin, 77);
  const std::size_t begin = margin + shift;
  std::vector<float> given(begin, 7);
  given.insert(given.end(), elements.begin(), elements.end());
  std::vector<float> kept(count + margin + begin, 7);
  std::vector<float> decoded(count + margin + begin, 7);
  if (residual != nullptr) std::copy(residual->begin(), residual->end(), kept.begin() + static_cast<std::ptrdiff_t>(begin));
  const devices::cuda::encoding encoding{given.data() + begin, residual == nullptr ? nullptr : kept.data() + begin,
                                         bytes.data() + margin, count};
  const std::uint64_t blocks = devices::cuda::codec_blocks(count);
  for (std::uint64_t block = 0; block < blocks; ++block) {
    std::vector<devices::cuda::thread_elements> own(devices::cuda::threads_in_block);
    std::vector<std::uint32_t> of_warp(devices::cuda::threads_in_block / devices::cuda::threads_in_warp, 0);
    for_each_thread(1, seed, [&](auto at) {
      own[at.thread] = devices::cuda::gather_tile(encoding, {block, at.thread});
      auto& largest = of_warp[at.thread / devices::cuda::threads_in_warp];
      largest = std::max(largest, own[at.thread].largest);
    });
    for_each_thread(1, seed + 1, [&](auto at) {
      devices::cuda::encode_tile(encoding, own[at.thread], of_warp[at.thread / devices::cuda::threads_in_warp],
                                 {block, at.thread});
    });
  }
  const devices::cuda::decoding decoding{bytes.data() + margin, decoded.data() + begin, count};
  for_each_thread(blocks, seed, [&](auto at) { devices::cuda::decode_tile(decoding, at); });
  const auto written = inner<std::int8_t>(bytes, 77, 0);
  const auto scales_begin = written.begin() + static_cast<std::ptrdiff_t>(padded);
  BOOST_TEST(
    std::all_of(written.begin() + static_cast<std::ptrdiff_t>(count), scales_begin, [](auto each) { return each == 0; }),
    "the codes are followed by something else than zeros");
  std::vector<float> scales(blocks_of_codes);
  if (blocks_of_codes > 0) std::memcpy(scales.data(), written.data() + padded, 4 * blocks_of_codes);
  return {{written.begin(), written.begin() + static_cast<std::ptrdiff_t>(count)},
          scales,
          inner<float>(kept, 7, shift),
          inner<float>(decoded, 7, shift)};
}

void check(const std::vector<float>& elements, const std::vector<float>& residual, const char* what, unsigned seed = 1,
           std::size_t shift = 0) {
  const plain_codec expected(elements, residual);
  const result made = over_the_grid(elements, &residual, seed, shift);
  BOOST_TEST((made.codes == expected.codes), "codes of " << what << ", " << elements.size() << " elements");
  BOOST_TEST((bits_of(made.scales) == bits_of(expected.scales)),
             "scales of " << what << ", " << elements.size() << " elements");
  BOOST_TEST((bits_of(made.residual) == bits_of(expected.residual)),
             "residual of " << what << ", " << elements.size() << " elements");
  BOOST_TEST((bits_of(made.decoded) == bits_of(expected.decoded)),
             "decoded of " << what << ", " << elements.size() << " elements");
}

}  // namespace

BOOST_AUTO_TEST_SUITE(block_codec)

BOOST_AUTO_TEST_CASE(all_sizes_have_the_bits_of_the_plain_codec) {  // BC-1, KE-1, KE-2, FB-1
  std::mt19937 random(1);
  for (const std::size_t count : {0, 1, 2, 31, 32, 33, 255, 256, 257, 511, 512, 1000, 2047, 2048, 2049, 5000})
    for (const float size : {1e-6F, 1.0F, 1e5F})
      check(gradients(count, size, random), gradients(count, size / 300, random), "gradients");
}

BOOST_AUTO_TEST_CASE(elements_need_no_alignment) {  // KE-2, QD-1
  std::mt19937 random(7);
  for (const std::size_t shift : {1, 2, 3})
    for (const std::size_t count : {1, 3, 255, 256, 1000})
      check(gradients(count, 1, random), gradients(count, 0.01F, random), "unaligned gradients", 1, shift);
}

BOOST_AUTO_TEST_CASE(numbers_of_all_sizes_have_the_bits_of_the_plain_codec) {  // BC-1, KE-1, FB-1, FB-2
  std::mt19937 random(2);
  for (int round = 0; round < 40; ++round) {
    auto elements = any_finite(4 * 256, random);
    // Blocks whose largest number is large, small, tiny and denormal.
    for (std::size_t i = 0; i < elements.size(); ++i)
      elements[i] = float_of(element_formats::bits_of(elements[i]) & ~(0x40000000U * (i / 256 % 2) | 0x20000000U * (i / 512)));
    for (std::size_t i = 768; i < 1024; ++i) elements[i] = float_of(element_formats::bits_of(elements[i]) & 0x800000ff);
    check(elements, std::vector<float>(elements.size(), 0), "numbers of all sizes", static_cast<unsigned>(round));
  }
}

BOOST_AUTO_TEST_CASE(the_order_of_threads_changes_nothing) {  // KE-1
  std::mt19937 random(3);
  const auto elements = gradients(3000, 1, random);
  const auto residual = gradients(3000, 0.01F, random);
  const auto once = over_the_grid(elements, &residual, 1);
  const auto again = over_the_grid(elements, &residual, 2);
  BOOST_TEST((once.codes == again.codes && bits_of(once.residual) == bits_of(again.residual)));
}

BOOST_AUTO_TEST_CASE(halves_go_to_the_even_code) {  // BC-1
  const std::vector<float> elements{127, 0.5F, 1.5F, 2.5F, -0.5F, -1.5F, -126.5F, 125.5F};
  const std::vector<float> none(elements.size(), 0);
  const auto made = over_the_grid(elements, &none);
  BOOST_TEST((made.codes == std::vector<std::int8_t>{127, 0, 2, 2, 0, -2, -126, 126}));
  BOOST_TEST(made.scales[0] == 1.0F);
}

BOOST_AUTO_TEST_CASE(an_element_is_off_by_half_a_scale_at_most_and_the_residual_keeps_it) {  // BC-2
  std::mt19937 random(4);
  const auto elements = gradients(2000, 3, random);
  const auto before = gradients(2000, 0.02F, random);
  const auto made = over_the_grid(elements, &before);
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const float sum = elements[i] + before[i];
    BOOST_TEST(std::abs(sum - made.decoded[i]) <= made.scales[i / 256] * 0.50001F);
    BOOST_TEST(made.residual[i] == sum - made.decoded[i]);
  }
}

BOOST_AUTO_TEST_CASE(error_feedback_delivers_what_rounding_held_back) {  // BC-2
  // One element is too small for a code. Its sum arrives all the same, and without feedback never.
  std::vector<float> elements(256, 0);
  elements[0] = 127;
  elements[9] = 0.125F;
  std::vector<float> residual(256, 0);
  float arrived = 0;
  for (int step = 0; step < 80; ++step) {
    const auto made = over_the_grid(elements, &residual);
    residual = made.residual;
    arrived += made.decoded[9];
  }
  BOOST_TEST(arrived == 10.0F);
  BOOST_TEST(over_the_grid(elements, nullptr).decoded[9] == 0.0F);
}

BOOST_AUTO_TEST_CASE(without_a_residual_the_codes_are_those_of_a_zero_residual) {  // KE-2
  std::mt19937 random(5);
  const auto elements = gradients(777, 1, random);
  const std::vector<float> none(elements.size(), 0);
  const auto with = over_the_grid(elements, &none);
  const auto without = over_the_grid(elements, nullptr);
  BOOST_TEST((with.codes == without.codes));
  BOOST_TEST((without.residual == std::vector<float>(elements.size(), 7)), "nobody may write a residual that was not given");
}

BOOST_AUTO_TEST_CASE(a_block_of_zeros_has_the_scale_0) {  // BC-3
  const std::vector<float> zeros(300, -0.0F);
  const std::vector<float> none(300, 0);
  const auto made = over_the_grid(zeros, &none);
  BOOST_TEST((bits_of(made.scales) == std::vector<std::uint32_t>{0, 0}));
  BOOST_TEST((bits_of(made.decoded) == std::vector<std::uint32_t>(300, 0)));
}

BOOST_AUTO_TEST_CASE(a_block_too_small_for_a_scale_stays_in_the_residual) {  // BC-3, FB-2
  const float tiny = 63 * 0x1p-149F;
  const std::vector<float> elements{tiny, -tiny};
  const std::vector<float> none(2, 0);
  const auto made = over_the_grid(elements, &none);
  BOOST_TEST(made.scales[0] == 0.0F);
  BOOST_TEST((made.residual == elements));
  BOOST_TEST(over_the_grid({64 * 0x1p-149F}, nullptr).scales[0] == 0x1p-149F);
}

BOOST_AUTO_TEST_CASE(an_element_that_is_not_finite_makes_its_block_nan_and_no_other) {  // BC-4
  for (const float bad : {infinity, -infinity, not_a_number, -not_a_number, float_of(0x7f800001)})
    for (const std::size_t index : {256, 300, 511}) {
      std::vector<float> elements(700, 1);
      elements[index] = bad;
      const std::vector<float> before(700, 0.25F);
      const auto made = over_the_grid(elements, &before);
      for (std::size_t i = 0; i < elements.size(); ++i) {
        const bool same_block = i / 256 == 1;
        BOOST_TEST(std::isnan(made.decoded[i]) == same_block);
        if (same_block) BOOST_TEST(made.residual[i] == 0.0F);
      }
      BOOST_TEST(element_formats::bits_of(made.scales[1]) == element_formats::nan_bits);
      check(elements, before, "a block with a number that is not finite");
    }
}

BOOST_AUTO_TEST_CASE(a_sum_or_a_residual_that_is_not_finite_makes_the_block_nan_once) {  // BC-4
  std::vector<float> elements(10, 1);
  elements[3] = largest_float;
  std::vector<float> before(10, 0);
  before[3] = 0x1p104F;
  const auto overflowed = over_the_grid(elements, &before);
  BOOST_TEST(std::isnan(overflowed.decoded[0]));
  const auto later = over_the_grid(elements, &overflowed.residual);
  BOOST_TEST(std::isfinite(later.decoded[0]));
  before[3] = not_a_number;
  BOOST_TEST(std::isnan(over_the_grid(elements, &before).decoded[9]));
}

BOOST_AUTO_TEST_CASE(the_largest_elements_stay_finite) {  // BC-5
  for (std::uint32_t bits = 0x7f7fffff; bits > 0x7f7fffff - 300; --bits) {
    const float large = float_of(bits);
    const std::vector<float> elements{large, -large, large / 2};
    const std::vector<float> none(3, 0);
    const auto made = over_the_grid(elements, &none);
    BOOST_TEST(std::isfinite(made.decoded[0]));
    BOOST_TEST(made.decoded[1] == -made.decoded[0]);
    BOOST_TEST(std::isfinite(made.residual[0]));
    check(elements, none, "the largest elements");
  }
  BOOST_TEST(std::isfinite(127 * float_of(element_formats::largest_scale_bits)));
  BOOST_TEST(std::isinf(127 * float_of(element_formats::largest_scale_bits + 1)));
}

BOOST_AUTO_TEST_CASE(any_bytes_decode_to_something) {  // BC-4
  using element_formats::decoded;
  BOOST_TEST(std::isnan(decoded(0, infinity)));
  BOOST_TEST(std::isnan(decoded(5, -not_a_number)));
  BOOST_TEST(std::isnan(decoded(5, -infinity)));
  BOOST_TEST(decoded(-128, 2) == -256.0F);
  BOOST_TEST(decoded(3, -2) == -6.0F);
}

BOOST_AUTO_TEST_CASE(a_grid_has_a_block_for_2048_elements) {  // KE-2
  BOOST_TEST(devices::cuda::codec_blocks(0) == 0u);
  BOOST_TEST(devices::cuda::codec_blocks(2048) == 1u);
  BOOST_TEST(devices::cuda::codec_blocks(2049) == 2u);
}

BOOST_AUTO_TEST_SUITE_END()
