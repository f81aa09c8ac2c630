// SPDX-License-Identifier: BSD-3-Clause
#include <boost/test/unit_test.hpp>

#include <set>
#include <string>

#include <troupe/messages/errors.hpp>

using namespace troupe;

BOOST_AUTO_TEST_CASE(every_code_has_a_text_of_its_own) {
  std::set<std::string> texts;
  const std::string unknown = to_text(static_cast<errc>(255));
  constexpr auto last = static_cast<unsigned>(errc::busy);
  for (unsigned code = 0; code <= last; ++code) {
    std::string text = to_text(static_cast<errc>(code));
    BOOST_TEST(!text.empty());
    BOOST_TEST(text != unknown, "code " << code << " has no text");
    BOOST_TEST(texts.insert(text).second, "'" << text << "' serves two codes");
  }
  BOOST_TEST(to_text(static_cast<errc>(last + 1)) == unknown, "errors_test.cpp must learn about newer codes");
}

BOOST_AUTO_TEST_CASE(an_error_keeps_its_code_and_text) {
  error failed{errc::peer_down, "stage1 is down"};
  BOOST_CHECK(failed.code() == errc::peer_down);
  BOOST_TEST(failed.what() == std::string("stage1 is down"));
}
