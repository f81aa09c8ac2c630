// SPDX-License-Identifier: BSD-3-Clause
#include "apps/charlm/text.hpp"

#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <stdexcept>
#include <vector>

#include "support/temporary_folder.hpp"

using namespace troupe::apps::charlm;
using troupe::apps::test::says;

BOOST_AUTO_TEST_SUITE(vocabulary_of_a_text)

BOOST_AUTO_TEST_CASE(tokens_are_numbered_in_the_order_of_the_characters) {
  const auto words = vocabulary::of("cabba");
  BOOST_TEST(words.size() == 3);
  BOOST_TEST(words.encode(U"abc") == (std::vector<std::int64_t>{0, 1, 2}), boost::test_tools::per_element());
  BOOST_TEST((words.decode({2, 0}) == U"ca"));
}

BOOST_AUTO_TEST_CASE(an_unknown_character_is_named_with_its_position) {  // VO-1
  BOOST_CHECK_EXCEPTION(vocabulary::of("ab").encode(U"aaz"), std::runtime_error, says({"'z'", "U+007A", "at 2"}));
}

BOOST_AUTO_TEST_CASE(characters_out_of_order_are_no_vocabulary) {
  BOOST_CHECK_THROW(vocabulary{U"ba"}, std::runtime_error);
  BOOST_CHECK_THROW(vocabulary{U"aa"}, std::runtime_error);
  BOOST_CHECK_THROW(vocabulary{U""}, std::runtime_error);
}

BOOST_AUTO_TEST_SUITE_END()
