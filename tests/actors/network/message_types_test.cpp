// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/network/message_types.hpp>

#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_SUITE(types_in_messages)

namespace {

using namespace troupe::network;

}  // namespace

BOOST_AUTO_TEST_CASE(a_list_with_a_type_that_no_node_sends_is_found) {  // MY-1
  for (const auto* each : {"@<>+@config_value", "@<>+@str+@group", "@<>+@group_down+@str"})
    for (const bool in_another : {false, true}) BOOST_TEST(has_harmful_type(each, in_another), each);
  for (const auto* each : {"@<>+@open_stream_msg", "@<>+@upstream_msg", "@<>+@u8+@downstream_msg"}) {
    BOOST_TEST(!has_harmful_type(each, false), each);
    BOOST_TEST(has_harmful_type(each, true), each);
  }
  for (const auto* each : {"", "@", "@<>", "@<>+", "@<>+@groups", "@<>+my.@group", "@<>+@str+troupe.call"})
    BOOST_TEST(!has_harmful_type(each, true), each);
}

BOOST_AUTO_TEST_CASE(messages_in_messages_and_bytes_without_limit_are_found) {
  for (const auto* each : {"@<>+@message", "@<>+@str+@error", "@<>+@exit", "@<>+@down"}) BOOST_TEST(has_nest(each), each);
  for (const auto* each : {"@<>", "@<>+my.@error", "@<>+@downstream_msg"}) BOOST_TEST(!has_nest(each), each);
  BOOST_TEST(has_unlimited_type("@<>+@u8+@charbuf"));
  BOOST_TEST(!has_unlimited_type("@<>+@str"));
  BOOST_TEST(names_harmful_type("x@<>+@str+@config_valuex"));
  BOOST_TEST(names_harmful_type("+@upstream_msg"));
  BOOST_TEST(!names_harmful_type("@config_value @group"));
}

BOOST_AUTO_TEST_CASE(nodes_answer_types_of_troupe_and_plain_ones) {
  for (const auto* each : {"@<>", "@<>+troupe.hello", "@<>+@unit", "@<>+@strong_actor_ptr+@u64", "@<>+bool"})
    BOOST_TEST(is_answer_of_node(each), each);
  for (const auto* each : {"@<>+@error", "@<>+troupe.hello+@actorvec", "@<>+my.type", "@<>+@charbuf", "@<>+"})
    BOOST_TEST(!is_answer_of_node(each), each);
}

BOOST_AUTO_TEST_SUITE_END()
