// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/services/message_clock.hpp>

#include <cstdint>
#include <limits>

#include <boost/test/unit_test.hpp>

#include <troupe/messages/messages.hpp>

using namespace troupe;
using troupe::services::message_clock;

BOOST_AUTO_TEST_SUITE(clock_of_messages)

BOOST_AUTO_TEST_CASE(numbers_rise_along_every_chain_of_messages) {  // MC-1
  message_clock one;
  message_clock two;
  std::uint64_t last = 0;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 5; ++i) one.next_number();  // messages to other nodes
    for (auto* each : {&one, &two}) {
      each->witness(last);
      const auto number = each->next_number();
      BOOST_TEST(number > last);
      last = number;
    }
  }
  one.witness(1);  // an old message
  one.witness(last);
  BOOST_TEST(one.next_number() > last);
}

// The node that is told a number may be told a lie.
BOOST_AUTO_TEST_CASE(numbers_rise_whatever_other_nodes_say) {  // MC-1, MC-2
  constexpr auto most = std::numeric_limits<std::uint64_t>::max();
  message_clock here;
  auto last = here.next_number();
  for (const auto told : {most, most - 1, highest_message_number, most, std::uint64_t{1}, most}) {
    here.witness(told);
    const auto number = here.next_number();
    BOOST_TEST(number > last);
    BOOST_TEST(number < highest_message_number / 2 + (std::uint64_t{1} << 24));
    last = number;
  }
  // Nodes that talk to this one catch up with its number.
  message_clock other;
  for (int messages = 0; messages < 10; ++messages) other.witness(last);
  BOOST_TEST(other.next_number() > last);
}

BOOST_AUTO_TEST_SUITE_END()
