// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/network/connection_host.hpp>

#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_CASE(a_new_connection_has_none_of_the_facts_of_an_earlier_one) {
  troupe::network::connection_facts facts;
  const auto much = troupe::network::connection_facts::least_noted + 1;
  facts.note_channel(3, 0);
  facts.note_waiting(3, much);
  facts.note_waiting(4, much - 1);
  BOOST_TEST((facts.process_beyond(3) == 0U));
  BOOST_TEST(facts.waiting(3) == much);
  BOOST_TEST(!facts.process_beyond(4).has_value());
  BOOST_TEST(facts.waiting(4) == 0U);
  facts.begin(3);
  BOOST_TEST(!facts.process_beyond(3).has_value());
  BOOST_TEST(facts.waiting(3) == 0U);
}
