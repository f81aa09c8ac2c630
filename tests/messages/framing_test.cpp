// SPDX-License-Identifier: BSD-3-Clause
#include <boost/test/unit_test.hpp>

#include <string>

#include <caf/span.hpp>

#include <troupe/messages/generated/troupe.pb.h>
#include <troupe/messages/framing.hpp>
#include <troupe/messages/message_size.hpp>

using troupe::fields_are_within;

BOOST_AUTO_TEST_SUITE(framing_of_messages)

namespace {

bool fits(const std::string& message) {
  static const troupe::deep_fields deep(*troupe::wire::CallRequest::descriptor());
  return fields_are_within(caf::as_bytes(caf::make_span(message)), deep);
}

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

BOOST_AUTO_TEST_CASE(outermost_fields_are_counted) {
  const auto count = [](const std::string& message) { return troupe::fields_in(caf::as_bytes(caf::make_span(message))); };
  const std::string other("\x12\x02\x08\x01", 4);  // holds a field of its own
  BOOST_TEST((count("") == 0U));
  BOOST_TEST((count(number + "\x01" + other + four_bytes + "1234") == 3U));
  BOOST_TEST(!count(number + "\x01" + other + four_bytes + "123").has_value());
}

BOOST_AUTO_TEST_CASE(a_field_that_ends_outside_of_its_inner_message_is_refused) {
  const auto value = [](const std::string& inner) { return std::string("\x22") + static_cast<char>(inner.size()) + inner; };
  BOOST_TEST(fits(value(counted + "\x03" + "abc")));
  BOOST_TEST(!fits(value(counted + "\x04" + "abc") + value(counted + "\x03" + "abc")));
}

// Each kind of entry that takes more memory than its bytes, as many as there may be, and one more.
BOOST_AUTO_TEST_CASE(entries_are_counted_by_list_and_unknown_fields_together) {
  using troupe::max_entries;
  const auto few = [](const std::string& message, const google::protobuf::Descriptor& type) {
    return troupe::entries_are_few(caf::as_bytes(caf::make_span(message)), type);
  };
  const auto times = [](std::size_t count, const std::string& entry) {
    std::string result;
    for (std::size_t i = 0; i < count; ++i) result += entry;
    return result;
  };
  const auto& call = *troupe::wire::CallRequest::descriptor();
  const std::string value("\x22\x00", 2);
  const std::string name("\x0a\x00", 2);  // of the function, which is no list: the last one counts
  const std::string unknown("\x7a\x00", 2);
  const std::string inner("\x2a\x02\x7a\x00", 4);  // an unknown field of the payload
  BOOST_TEST(few(times(max_entries, value) + times(max_entries + 1, name) + times(max_entries, unknown), call));
  BOOST_TEST(!few(times(max_entries + 1, value), call));
  BOOST_TEST(!few(times(max_entries, unknown) + inner, call));
  BOOST_TEST(!few(times(max_entries, inner) + unknown, call));
  BOOST_TEST(few(times(max_entries, inner), call));
  const auto& status = *troupe::wire::NodeStatus::descriptor();
  const std::string peer("\x8a\x01\x00\xfa\x01\x00", 6);  // name and reason, which are two lists
  BOOST_TEST(few(times(max_entries, peer), status));
  BOOST_TEST(!few(times(max_entries + 1, peer), status));
  const auto& held = *troupe::wire::HeldObjects::descriptor();
  const std::string packed("\x12\x80\x80\x80\x02", 5);  // 4 MiB of numbers
  BOOST_TEST(few(packed + std::string(troupe::max_numbers, '\x01'), held));
  BOOST_TEST(!few(packed + std::string(troupe::max_numbers, '\x01') + std::string("\x10\x01", 2), held));
  const std::string far("\xf8\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00", 11);  // a field with a number of 61 bits
  const auto& heartbeat = *troupe::wire::Heartbeat::descriptor();
  const std::string of_another_kind("\x12\x00", 2);  // libprotobuf takes it for a field that it does not know
  BOOST_TEST(few(times(max_entries, of_another_kind), heartbeat));
  BOOST_TEST(!few(times(max_entries + 1, of_another_kind), heartbeat));
  BOOST_TEST(!few(std::string("\x2a\x02\x0b\x0c", 4), call));  // a group within the payload
  BOOST_TEST(few(times(max_entries, far), call));
  BOOST_TEST(!few(times(max_entries + 1, far), call));
}

BOOST_AUTO_TEST_CASE(groups_are_refused) { BOOST_TEST(!fits(group + "\x0c")); }

BOOST_AUTO_TEST_SUITE_END()
