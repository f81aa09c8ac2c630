// SPDX-License-Identifier: BSD-3-Clause
#include <boost/test/unit_test.hpp>

#include <string>

#include <troupe/messages/attributes.hpp>
#include <troupe/messages/errors.hpp>
#include <troupe/messages/message_size.hpp>

using namespace troupe;

namespace {

const attributes sample = {{"causal", true}, {"width", 128}, {"rate", 0.5}, {"name", "block"}};

auto says(const std::string& text) {
  return [text](const error& failed) {
    BOOST_TEST((failed.code() == errc::misuse));
    BOOST_TEST(failed.what() == text);  // the whole text: there is no stack trace
    return true;
  };
}

}  // namespace

BOOST_AUTO_TEST_CASE(each_type_is_got_by_name) {
  BOOST_TEST(get<bool>(sample, "causal"));
  BOOST_TEST(get<std::int64_t>(sample, "width") == 128);
  BOOST_TEST(get<double>(sample, "rate") == 0.5);
  BOOST_TEST(get<std::string>(sample, "name") == "block");
}

BOOST_AUTO_TEST_CASE(an_integer_serves_as_a_double_but_not_the_other_way) {
  BOOST_TEST(get<double>(sample, "width") == 128.0);
  BOOST_CHECK_EXCEPTION(get<std::int64_t>(sample, "rate"), error, says("attribute 'rate' is a double, expected an integer"));
  BOOST_CHECK_EXCEPTION(get<std::string>(sample, "width"), error, says("attribute 'width' is an integer, expected a string"));
}

BOOST_AUTO_TEST_CASE(a_missing_name_is_an_error_that_lists_what_is_there) {
  BOOST_CHECK_EXCEPTION(get<bool>(sample, "bias"), error,
                        says("attribute 'bias' (a bool) is missing; given are: causal, name, rate, width"));
  BOOST_CHECK_EXCEPTION(get<bool>({}, "bias"), error, says("attribute 'bias' (a bool) is missing; given are: none"));
}

BOOST_AUTO_TEST_CASE(a_default_stands_in_for_a_missing_name_only) {
  BOOST_TEST(get_or<std::int64_t>(sample, "heads", 4) == 4);
  BOOST_TEST(get_or<std::int64_t>(sample, "width", 4) == 128);
  BOOST_TEST(get_or<std::string>(sample, "kind", "none") == "none");
  BOOST_TEST(get_or<double>(sample, "width", 1.0) == 128.0);
  BOOST_CHECK_THROW(get_or<bool>(sample, "width", true), error);
}

BOOST_AUTO_TEST_CASE(values_that_no_message_may_have_are_refused_before_they_are_sent) {
  attributes values;
  for (std::size_t i = 0; i < max_attributes; ++i) values[std::to_string(i)] = true;
  check_can_travel(values, "the call");
  values["one more"] = true;
  BOOST_CHECK_EXCEPTION(
    check_can_travel(values, "the call"), error,
    says("the call: it has 65537 values, at most 65536 travel in one message; send large values as tensors, or "
         "in several"));
  check_can_travel({{std::string(max_attribute_name_bytes, 'x'), 1}}, "the call");
  BOOST_CHECK_EXCEPTION(check_can_travel({{std::string(max_attribute_name_bytes + 1, 'x'), 1}}, "the call"), error,
                        says("the call: the name of a value has 1025 bytes, expected at most 1024"));
  check_can_travel({{"text", std::string(max_attribute_bytes - 100, 'x')}}, "the call");
  BOOST_CHECK_EXCEPTION(
    check_can_travel({{"text", std::string(max_attribute_bytes, 'x')}}, "the call"), error,
    says("the call: its values have 16777252 bytes together, at most 16777216 travel in one message; send large "
         "values as tensors, or in several"));
}
