// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/logging/log_lines.hpp>

#include <boost/test/unit_test.hpp>

using troupe::logging::one_line;

namespace {

constexpr std::size_t much = 1000;

}  // namespace

BOOST_AUTO_TEST_CASE(text_that_can_be_shown_stays_as_it_is) {
  for (const std::string text : {"", "peer 'ps' is up: [::1]:4711, TCP", "caf\xc3\xa9 \xe4\xb8\xad \xf0\x9f\x99\x82 \\n"})
    BOOST_TEST(one_line(text, much) == text);
}

BOOST_AUTO_TEST_CASE(line_breaks_and_control_characters_are_escaped) {  // LX-1
  BOOST_TEST(one_line("a\nb\r\tc\x1b[31md\x7f", much) == "a\\nb\\r\\tc\\x1b[31md\\x7f");
  BOOST_TEST(one_line(std::string("\0z", 2), much) == "\\x00z");
  BOOST_TEST(one_line("\xc2\x9b"
                      "31m",
                      much) == "\\x9b31m");                       // starts a terminal's control sequence
  BOOST_TEST(one_line("a\xe2\x80\xa8z", much) == "a\\u{2028}z");  // a line separator
  BOOST_TEST(one_line("\xe2\x80\xae"
                      "evil",
                      much) == "\\u{202e}evil");  // makes the text run from right to left
}

BOOST_AUTO_TEST_CASE(bytes_that_are_not_utf8_are_escaped) {  // LX-1
  BOOST_TEST(one_line("\xff", much) == "\\xff");
  BOOST_TEST(one_line("\xc3", much) == "\\xc3");                    // the first half of a character
  BOOST_TEST(one_line("\xc0\x8a", much) == "\\xc0\\x8a");           // a line break in an overlong encoding
  BOOST_TEST(one_line("\xe0\x80\x8a", much) == "\\xe0\\x80\\x8a");  // the same, in three bytes
  BOOST_TEST(one_line("\xed\xa0\x80", much) == "\\xed\\xa0\\x80");  // a surrogate of UTF-16
  BOOST_TEST(one_line("\xf4\x90\x80\x80", much) == "\\xf4\\x90\\x80\\x80");
}

BOOST_AUTO_TEST_CASE(a_long_text_is_cut_between_two_characters) {
  BOOST_TEST(one_line("abcdef", 6) == "abcdef");
  BOOST_TEST(one_line("abcdefg", 6) == "abcdef... (1 bytes more)");
  BOOST_TEST(one_line("abc\xc3\xa9z", 4) == "abc... (3 bytes more)");
  BOOST_TEST(one_line("abc\nz", 4) == "abc... (2 bytes more)");
}
