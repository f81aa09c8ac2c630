// SPDX-License-Identifier: BSD-3-Clause
#include <boost/test/unit_test.hpp>

#include "apps/text_table.hpp"

BOOST_AUTO_TEST_CASE(cells_of_a_column_are_aligned) {
  BOOST_TEST(troupe::apps::text_table({{"name", "n", "x"}, {"a", "1,000", "-"}, {"longer", "7", ""}}, 1) ==
             "name        n  x\n"
             "a       1,000  -\n"
             "longer      7\n");
  BOOST_TEST(troupe::apps::text_table({}, 1) == "");
}
