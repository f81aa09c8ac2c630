// SPDX-License-Identifier: BSD-3-Clause
#include <cstdint>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <troupe/engine/node_map.hpp>

using namespace troupe::engine;

BOOST_AUTO_TEST_SUITE(node_maps)

BOOST_AUTO_TEST_CASE(number_functions_by_address_and_can_be_used_again) {
  std::vector<std::uint64_t> memory(20'000);
  const auto address = [&](std::size_t i) { return reinterpret_cast<const torch::autograd::Node*>(&memory[i]); };
  node_map map;
  BOOST_TEST(map.find(address(0), 77) == 77u);
  for (const std::size_t count : {20'000, 3, 3, 5000}) {
    for (std::uint32_t i = 0; i < count; ++i) {
      const auto [index, fresh] = map.insert(address(i));
      BOOST_REQUIRE(fresh);
      index = i;
    }
    for (std::uint32_t i = 0; i < count; ++i) {
      BOOST_REQUIRE(!map.insert(address(i)).fresh);
      BOOST_REQUIRE(map.find(address(i), 77) == (i));
    }
    BOOST_TEST((count == memory.size() || map.find(address(count), 77) == 77u));
    map.clear();
    BOOST_TEST(map.find(address(0), 77) == 77u);
  }
}

BOOST_AUTO_TEST_SUITE_END()
