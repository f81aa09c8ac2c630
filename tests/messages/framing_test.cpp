// SPDX-License-Identifier: BSD-3-Clause
#include <boost/test/unit_test.hpp>

#include <string>

#include <caf/span.hpp>

#include <troupe/messages/framing.hpp>

using troupe::fields_are_within;

BOOST_AUTO_TEST_SUITE(framing_of_messages)

namespace {

bool fits(const std::string& message) { return fields_are_within(caf::as_bytes(caf::make_span(message))); }

// The tag of field 1, of each wire type.
const std::string number(1, '\x08');
const std::string eight_bytes(1, '\x09');
const std::string counted(1, '\x0a');
const std::string group(1, '\x0b');
const std::string four_bytes(1, '\x0d');

}  // namespace

BOOST_AUTO_TEST_CASE(fields_of_every_kind_that_end_within_the_message_are_taken) {
  BOOST_TEST(fits(""));
  BOOST_TEST(fits(number + "\x96\x01"));
  BOOST_TEST(fits(eight_bytes + "12345678"));
  BOOST_TEST(fits(four_bytes + "1234"));
  BOOST_TEST(fits(counted + "\x03" + "abc"));
  BOOST_TEST(fits(counted + "\x03" + "abc" + number + "\x01" + four_bytes + "1234"));
}

BOOST_AUTO_TEST_CASE(a_field_that_ends_outside_of_the_message_is_refused) {
  BOOST_TEST(!fits(number));
  BOOST_TEST(!fits(number + "\x96"));
  BOOST_TEST(!fits(eight_bytes + "1234567"));
  BOOST_TEST(!fits(four_bytes + "123"));
  BOOST_TEST(!fits(counted + "\x04" + "abc"));
  BOOST_TEST(!fits(counted));
  BOOST_TEST(!fits(counted + "\x03" + "abc" + counted + "\x01"));
}

BOOST_AUTO_TEST_CASE(a_number_of_more_than_ten_bytes_is_refused) {
  BOOST_TEST(fits(number + std::string(9, '\xff') + "\x01"));
  BOOST_TEST(!fits(number + std::string(10, '\xff') + "\x01"));
  BOOST_TEST(!fits(std::string(11, '\xff')));
}

BOOST_AUTO_TEST_CASE(a_length_of_64_bits_does_not_wrap) {
  BOOST_TEST(!fits(counted + std::string(9, '\xff') + "\x01" + "abc"));
}

BOOST_AUTO_TEST_CASE(groups_are_refused) { BOOST_TEST(!fits(group + "\x0c")); }

BOOST_AUTO_TEST_SUITE_END()
