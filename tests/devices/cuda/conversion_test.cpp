// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/devices/cuda/conversion.hpp>

#include <boost/test/unit_test.hpp>

#include <random>
#include <utility>
#include <vector>

#include <troupe/messages/half_floats.hpp>

#include "grid.hpp"

using namespace troupe;

namespace {

std::size_t conversions = 0;

std::uint16_t counted(float value) {
  ++conversions;
  return static_cast<std::uint16_t>(value + 1);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(conversion)

BOOST_AUTO_TEST_CASE(each_element_is_converted_and_nothing_beside_them) {  // KV-1, QD-1
  // The elements begin so far behind addresses that are aligned for quads.
  const std::vector<std::pair<std::size_t, std::size_t>> shifts{{0, 0}, {1, 0}, {0, 1}, {3, 2}};
  for (const std::size_t count : {1, 2, 3, 255, 256, 257, 2047, 2048, 2049, 2304, 4096, 10000}) {
    for (const auto& shift : shifts) {
      const std::size_t from_shift = shift.first, to_shift = shift.second;
      std::vector<float> from(count + from_shift);
      for (std::size_t i = 0; i < count; ++i) from[from_shift + i] = static_cast<float>(i % 60000);
      const std::size_t begin = 304 + to_shift;
      std::vector<std::uint16_t> to(count + begin + 300, 7);
      conversions = 0;
      test::for_each_thread(devices::cuda::conversion_blocks(count), static_cast<unsigned>(count), [&](auto at) {
        devices::cuda::convert_tile<counted>(from.data() + from_shift, to.data() + begin, count, at);
      });
      BOOST_TEST(conversions == count);
      std::vector<std::uint16_t> expected(count + begin + 300, 7);
      for (std::size_t i = 0; i < count; ++i) expected[begin + i] = static_cast<std::uint16_t>(i % 60000 + 1);
      BOOST_TEST((to == expected), "wrong for " << count << " elements, " << from_shift << " and " << to_shift << " behind");
    }
  }
}

BOOST_AUTO_TEST_CASE(a_grid_has_a_block_for_2048_elements) {  // KV-1
  BOOST_TEST(devices::cuda::conversion_blocks(0) == 0u);
  BOOST_TEST(devices::cuda::conversion_blocks(1) == 1u);
  BOOST_TEST(devices::cuda::conversion_blocks(2048) == 1u);
  BOOST_TEST(devices::cuda::conversion_blocks(2049) == 2u);
}

BOOST_AUTO_TEST_CASE(elements_beyond_four_billion_are_reached) {  // KV-1
  const std::uint64_t count = (std::uint64_t{1} << 32) + 3000;
  std::vector<float> last(3000, 4);
  std::vector<std::uint16_t> to(3000, 0);
  // Only the end of the arrays is there: the blocks before it are not run.
  const auto begin = std::uint64_t{1} << 32;
  const auto from_address = reinterpret_cast<std::uintptr_t>(last.data()) - begin * sizeof(float);
  const auto to_address = reinterpret_cast<std::uintptr_t>(to.data()) - begin * sizeof(std::uint16_t);
  BOOST_TEST(devices::cuda::conversion_blocks(count) == (begin + 3000 + 2047) / 2048);
  for (std::uint64_t block = begin / 2048; block < devices::cuda::conversion_blocks(count); ++block)
    for (std::uint32_t thread = 0; thread < devices::cuda::threads_in_block; ++thread)
      devices::cuda::convert_tile<element_formats::to_bfloat16>(
        reinterpret_cast<const float*>(from_address), reinterpret_cast<std::uint16_t*>(to_address), count, {block, thread});
  BOOST_TEST((to == std::vector<std::uint16_t>(3000, 0x4080)));
}

BOOST_AUTO_TEST_SUITE_END()
