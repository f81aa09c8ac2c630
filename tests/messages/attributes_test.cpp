// SPDX-License-Identifier: BSD-3-Clause
#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

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

BOOST_AUTO_TEST_CASE(every_integer_and_floating_point_number_is_a_value) {
  const attributes all = {
    {"size", std::size_t{3}}, {"unsigned", 4U}, {"long_long", 5LL}, {"char", static_cast<std::int8_t>(-6)},
    {"short", short{7}},      {"float", 0.5F},  {"bool", true},     {"view", std::string_view("text")}};
  BOOST_TEST(get<std::size_t>(all, "size") == 3U);
  BOOST_TEST(get<unsigned>(all, "unsigned") == 4U);
  BOOST_TEST(get<long long>(all, "long_long") == 5);
  BOOST_TEST(get<int>(all, "char") == -6);
  BOOST_TEST(get<std::uint8_t>(all, "short") == 7);
  BOOST_TEST(get<float>(all, "float") == 0.5F);
  BOOST_TEST(get_or<std::size_t>(all, "none", 9) == 9U);
  BOOST_TEST(get<std::string>(all, "view") == "text");
  BOOST_TEST((all.at("bool") == attribute(true)));
  static_assert(!std::is_constructible_v<attribute, const void*>);  // no pointer is a truth
}

BOOST_AUTO_TEST_CASE(an_integer_that_does_not_fit_is_refused) {
  const attributes all = {{"large", 300}, {"negative", -1}, {"list", std::vector{1, 300}}};
  BOOST_CHECK_EXCEPTION(get<std::uint8_t>(all, "large"), error,
                        says("attribute 'large' is 300, expected an integer of at least 0 that fits into 8 bits"));
  BOOST_CHECK_EXCEPTION(get<std::int8_t>(all, "large"), error,
                        says("attribute 'large' is 300, expected an integer that fits into 8 bits"));
  BOOST_CHECK_EXCEPTION(get<std::size_t>(all, "negative"), error,
                        says("attribute 'negative' is -1, expected an integer of at least 0 that fits into 64 bits"));
  BOOST_CHECK_EXCEPTION(get<std::vector<std::int8_t>>(all, "list"), error,
                        says("attribute 'list' is 300, expected an integer that fits into 8 bits"));
  const auto text =
    "an attribute is 9223372036854775808, expected an integer of at most 9223372036854775807; a larger one may travel as a "
    "string";
  BOOST_CHECK_EXCEPTION(attribute(std::uint64_t{1} << 63), error, says(text));
  BOOST_CHECK_EXCEPTION(attribute(std::vector{std::uint64_t{1} << 63}), error, says(text));
  BOOST_TEST(get<std::uint64_t>({{"most", std::uint64_t{(std::uint64_t{1} << 63) - 1}}}, "most") ==
             (std::uint64_t{1} << 63) - 1);
}

BOOST_AUTO_TEST_CASE(lists_are_values) {
  const attributes all = {{"sizes", std::vector<std::size_t>{1, 2}},
                          {"rates", std::vector{0.5, 0.25}},
                          {"names", std::vector<std::string>{"a", "b"}},
                          {"empty", std::vector<int>{}}};
  BOOST_TEST(get<std::vector<std::int64_t>>(all, "sizes") == (std::vector<std::int64_t>{1, 2}),
             boost::test_tools::per_element());
  BOOST_TEST(get<std::vector<int>>(all, "sizes") == (std::vector{1, 2}), boost::test_tools::per_element());
  BOOST_TEST(get<std::vector<double>>(all, "sizes") == (std::vector{1.0, 2.0}), boost::test_tools::per_element());
  BOOST_TEST(get<std::vector<float>>(all, "rates") == (std::vector{0.5F, 0.25F}), boost::test_tools::per_element());
  BOOST_TEST(get<std::vector<std::string>>(all, "names") == (std::vector<std::string>{"a", "b"}),
             boost::test_tools::per_element());
  BOOST_TEST(get<std::vector<double>>(all, "empty").empty());
  BOOST_CHECK_EXCEPTION(get<std::vector<int>>(all, "rates"), error,
                        says("attribute 'rates' is a list of doubles, expected a list of integers"));
  BOOST_CHECK_EXCEPTION(get<std::string>(all, "names"), error,
                        says("attribute 'names' is a list of strings, expected a string"));
  BOOST_CHECK_EXCEPTION(get<std::vector<std::string>>(all, "none"), error,
                        says("attribute 'none' (a list of strings) is missing; given are: empty, names, rates, sizes"));
}

BOOST_AUTO_TEST_CASE(entries_of_lists_count_as_values) {
  check_can_travel({{"list", std::vector<std::int64_t>(max_attributes - 1)}}, "the call");
  BOOST_CHECK_EXCEPTION(
    check_can_travel({{"list", std::vector<std::int64_t>(max_attributes)}}, "the call"), error,
    says("the call: it has 65537 values, at most 65536 travel in one message; send large values as tensors, or in several"));
  BOOST_CHECK_THROW(check_can_travel({{"list", std::vector<std::string>(2, std::string(max_attribute_bytes / 2, 'x'))}}, "it"),
                    error);
}
