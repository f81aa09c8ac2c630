// SPDX-License-Identifier: BSD-3-Clause
#include <boost/test/unit_test.hpp>

#include <signal.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "apps/charlm/text.hpp"
#include "support/temporary_folder.hpp"

using namespace troupe::apps::charlm;
using troupe::apps::test::says;
using troupe::apps::test::temporary_folder;

BOOST_AUTO_TEST_SUITE(text_of_a_run)

BOOST_AUTO_TEST_CASE(a_missing_text_is_named_with_what_to_do) {  // TX-1
  BOOST_CHECK_EXCEPTION(text::read("no/such/file"), std::runtime_error, says({"no/such/file", "there is none", "--data"}));
}

BOOST_AUTO_TEST_CASE(an_empty_text_is_named_with_what_to_do) {  // TX-1
  const temporary_folder folder;
  const auto path = folder.write("empty.txt", "");
  BOOST_CHECK_EXCEPTION(text::read(path), std::runtime_error, says({path, "empty", "--data"}));
}

BOOST_AUTO_TEST_CASE(a_binary_file_is_named_with_the_position_of_its_first_nul) {  // TX-1
  const temporary_folder folder;
  const auto path = folder.write("program", std::string("abc\0def", 7));
  BOOST_CHECK_EXCEPTION(text::read(path), std::runtime_error, says({path, "byte 3", "binary", "--data"}));
}

BOOST_AUTO_TEST_CASE(a_text_that_is_too_long_or_has_no_end_is_refused) {  // TX-1
  BOOST_CHECK_EXCEPTION(text::read("/dev/zero"), std::runtime_error, says({"/dev/zero", "byte 0", "binary", "--data"}));
  const temporary_folder folder;
  const auto large = folder.write("large", "");
  std::filesystem::resize_file(large, text::most_bytes + 1);
  BOOST_CHECK_EXCEPTION(text::read(large), std::runtime_error, says({large, "at most 1074 MB", "longer", "--data"}));
  const std::string pipe = folder.path() / "pipe";
  BOOST_REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  const auto before = ::signal(SIGPIPE, SIG_IGN);
  std::thread writer([&] {
    std::ofstream out(pipe);
    while (out << "a text that never ends\n") {
    }
  });
  BOOST_CHECK_EXCEPTION(text::read(pipe, {}, 5'000'000), std::runtime_error, says({pipe, "at most 5 MB", "longer", "--data"}));
  writer.join();
  ::signal(SIGPIPE, before);
}

BOOST_AUTO_TEST_CASE(a_long_text_is_announced) {
  const temporary_folder folder;
  std::vector<std::string> told;
  const auto tell = [&](const std::string& line) { told.push_back(line); };
  text::read(folder.write("short", "a text"), tell);
  BOOST_TEST(told.empty());
  const auto path = folder.write("long", std::string(16'000'000, 'a'));
  text::read(path, tell);
  BOOST_TEST(told == std::vector<std::string>{"reading 16 MB of text from " + path + " ..."}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(what_is_not_utf8_is_named_with_its_position_and_how_to_convert_it) {  // TX-1
  for (const std::string bad : {"ab\xE4"
                                "c",
                                "ab\xC0\x80", "ab\xED\xA0\x80", "ab\xF5\x80\x80\x80", "ab\xE2\x82"})
    BOOST_CHECK_EXCEPTION(text::parse(bad, "here"), std::runtime_error, says({"here", "byte 2", "UTF-8", "iconv"}));
}

BOOST_AUTO_TEST_CASE(a_folder_is_its_regular_files_in_the_order_of_their_names) {  // TX-2
  const temporary_folder folder;
  folder.write("b", "second");
  folder.write("a", "first ");
  std::filesystem::create_symlink("a", folder.path() / "c");
  BOOST_TEST(text::read(folder.path()).bytes == "first second");
}

BOOST_AUTO_TEST_CASE(a_folder_without_files_is_refused) {  // TX-1
  const temporary_folder folder;
  BOOST_CHECK_EXCEPTION(text::read(folder.path()), std::runtime_error, says({folder.path(), "holds none"}));
}

BOOST_AUTO_TEST_CASE(characters_are_code_points_and_come_back_as_the_same_bytes) {
  const std::string bytes = "a\xC3\xA4\xE2\x82\xAC\xF0\x9F\x8E\xAD";
  const auto characters = from_utf8(bytes);
  BOOST_TEST((characters == std::u32string{U'a', 0xE4, 0x20AC, 0x1F3AD}));
  BOOST_TEST(to_utf8(characters) == bytes);
}

BOOST_AUTO_TEST_CASE(fingerprints_tell_texts_apart) {  // TX-2
  BOOST_TEST(text::parse("one", "x").fingerprint() == text::parse("one", "y").fingerprint());
  BOOST_TEST(text::parse("one", "x").fingerprint() != text::parse("eno", "x").fingerprint());
  BOOST_TEST(text::parse("one", "x").fingerprint().size() == 16u);
}

BOOST_AUTO_TEST_SUITE_END()
