// SPDX-License-Identifier: BSD-3-Clause
#include <boost/test/unit_test.hpp>

#include <unordered_set>

#include <troupe/messages/ids.hpp>

using namespace troupe;

BOOST_AUTO_TEST_CASE(ids_are_shown_as_number_and_node) {
  node_id node{0x12ab};
  BOOST_TEST(to_string(node) == "00000000000012ab");
  BOOST_TEST(to_string(node_id{~std::uint64_t{0}}) == "ffffffffffffffff");
  BOOST_TEST(to_string(context_id{node, 7}) == "7@00000000000012ab");
  BOOST_TEST(to_string(message_id{8, node}) == "8@00000000000012ab");
  BOOST_TEST(to_string(object_id{node, 9}) == "9@00000000000012ab");
}

BOOST_AUTO_TEST_CASE(number_0_is_none) {
  BOOST_TEST(to_string(context_id{}) == "none");
  BOOST_TEST(to_string(object_id{}) == "none");
  BOOST_TEST(!context_id{});
  BOOST_TEST((!object_id{{1}, 0}));
}

BOOST_AUTO_TEST_CASE(message_ids_are_ordered_by_the_clock_first) {
  BOOST_TEST((message_id{1, {9}} < message_id{2, {3}}));
  BOOST_TEST((message_id{2, {3}} < message_id{2, {9}}));
}

BOOST_AUTO_TEST_CASE(hashes_of_neighbouring_ids_differ) {
  std::unordered_set<std::size_t> hashes;
  for (std::uint64_t node = 0; node < 100; ++node)
    for (std::uint64_t number = 0; number < 100; ++number) hashes.insert(std::hash<context_id>{}(context_id{{node}, number}));
  BOOST_TEST(hashes.size() == 10000u);
}
