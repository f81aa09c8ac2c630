// SPDX-License-Identifier: BSD-3-Clause
#include <boost/test/unit_test.hpp>

#include <c10/util/Exception.h>

#include <troupe/messages/attributes.hpp>

using namespace troupe;

namespace {

const attributes sample = {{"causal", true}, {"width", 128}, {"rate", 0.5}, {"name", "block"}};

bool mentions(const c10::Error& failed, std::initializer_list<const char*> words) {
  std::string text = failed.what_without_backtrace();
  for (const char* word : words) {
    if (text.find(word) == std::string::npos) {
      BOOST_TEST_MESSAGE("'" << text << "' does not say '" << word << "'");
      return false;
    }
  }
  return true;
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
  BOOST_CHECK_EXCEPTION(get<std::int64_t>(sample, "rate"), c10::Error, [](const c10::Error& failed) {
    return mentions(failed, {"'rate'", "is a double", "expected a integer"});
  });
}

BOOST_AUTO_TEST_CASE(a_missing_name_is_an_error_that_lists_what_is_there) {
  BOOST_CHECK_EXCEPTION(get<bool>(sample, "bias"), c10::Error, [](const c10::Error& failed) {
    return mentions(failed, {"'bias'", "missing", "causal, name, rate, width"});
  });
  BOOST_CHECK_EXCEPTION(get<bool>({}, "bias"), c10::Error,
                        [](const c10::Error& failed) { return mentions(failed, {"given are: none"}); });
}

BOOST_AUTO_TEST_CASE(a_default_stands_in_for_a_missing_name_only) {
  BOOST_TEST(get_or<std::int64_t>(sample, "heads", 4) == 4);
  BOOST_TEST(get_or<std::int64_t>(sample, "width", 4) == 128);
  BOOST_TEST(get_or<std::string>(sample, "kind", "none") == "none");
  BOOST_TEST(get_or<double>(sample, "width", 1.0) == 128.0);
  BOOST_CHECK_THROW(get_or<bool>(sample, "width", true), c10::Error);
}
