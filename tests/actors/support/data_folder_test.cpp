// SPDX-License-Identifier: BSD-3-Clause
#include <boost/test/unit_test.hpp>

#include <filesystem>
#include <string>
#include <vector>

#include <troupe/actors/support/data_folder.hpp>
#include <troupe/actors/support/refused_request.hpp>

#include "support/contains.hpp"
#include "support/temporary_folder.hpp"

namespace fs = std::filesystem;
using troupe::support::data_folder;
using troupe::support::names_in_path;
using troupe::support::refused_request;
using troupe::test::contains;

namespace {

auto names(const std::string& text) {
  return [=](const troupe::error& problem) { return contains(problem.what(), text) && contains(problem.what(), "--data-dir"); };
}

auto has_text(const std::string& text) {
  return [=](const troupe::error& problem) { return contains(problem.what(), text); };
}

struct with_folder {
  troupe::apps::test::temporary_folder outer;
  fs::path inside = fs::canonical(outer.path()) / "made" / "data";
  data_folder data{(outer.path() / "made" / "data").string()};

  /// Checks that each way to use the path is refused with the text.
  void check_refused(const std::string& path, const std::string& text) const {
    BOOST_TEST_CONTEXT(path) {
      BOOST_CHECK_EXCEPTION(data.path_of(path), refused_request, has_text(text));
      BOOST_CHECK_EXCEPTION(data.find(path), refused_request, has_text(text));
      BOOST_CHECK_EXCEPTION(data.find_or_make(path), refused_request, has_text(text));
      BOOST_CHECK_EXCEPTION(data.nearest(path), refused_request, has_text(text));
    }
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(folder_of_data, with_folder)

BOOST_AUTO_TEST_CASE(paths_are_below_the_folder_which_is_made) {  // DA-1, DA-3
  BOOST_TEST(fs::is_directory(inside));
  BOOST_TEST(fs::is_empty(inside));
  BOOST_TEST(data.path_of("run/part") == (inside / "run/part").string());
  BOOST_TEST(data.path_of("./run//part/") == (inside / "run/part").string());
  BOOST_TEST(!data.find("run/a"));
  BOOST_TEST(data.nearest("run/a").text() == "");
  BOOST_TEST(!fs::exists(inside / "run"));
  BOOST_TEST(data.find_or_make("run/a").text() == "run/a");
  BOOST_TEST(fs::is_directory(inside / "run/a"));
  BOOST_TEST(data.find("run/a")->text() == "run/a");
  BOOST_TEST(data.nearest("run/b/c").text() == "run");
  BOOST_TEST(data.path_of("run/a/part") == (inside / "run/a/part").string());
}

BOOST_AUTO_TEST_CASE(without_a_folder_every_path_is_refused) {  // DA-1
  const data_folder none;
  BOOST_TEST(!none);
  BOOST_TEST(static_cast<bool>(data));
  for (const std::string path : {"x", "/tmp/x", ""}) {
    const auto refusal = names("this node has no data folder");
    BOOST_CHECK_EXCEPTION(none.path_of(path), refused_request, refusal);
    BOOST_CHECK_EXCEPTION(none.find(path), refused_request, refusal);
    BOOST_CHECK_EXCEPTION(none.find_or_make(path), refused_request, refusal);
    BOOST_CHECK_EXCEPTION(none.nearest(path), refused_request, refusal);
  }
}

BOOST_AUTO_TEST_CASE(paths_that_lead_out_are_refused) {  // DA-2
  for (const auto& path :
       std::vector<std::string>{"../x", "a/../../x", "a/..", "/etc/passwd", "/", (inside / "x").string(), ".."})
    check_refused(path, "the path '" + path + "' leads out");
  for (const std::string path : {"", ".", "./", "a/../"}) BOOST_CHECK_THROW(data.find(path), refused_request);
  check_refused(std::string("x\0/../../y", 10), "control characters");
}

BOOST_AUTO_TEST_CASE(hard_names_are_refused) {  // DA-2
  check_refused("a/.ssh/x", "has a hidden name");
  check_refused(".hidden", "has a hidden name");
  check_refused("...", "has a hidden name");
  check_refused("a\nb", "the path 'a?b' has control characters");
  check_refused("a\x7f", "has control characters");
  check_refused(std::string(256, 'x'), "has a name of more than 255 bytes");
  check_refused(std::string(1025, 'x'), "has more than 1024 bytes");
  std::string deep = "a";
  for (int i = 0; i < 15; ++i) deep += "/a";
  BOOST_TEST(names_in_path(deep).size() == 16u);
  check_refused(deep + "/a", "has more than 16 names");
  BOOST_TEST(names_in_path(std::string(255, 'x')).size() == 1u);
  BOOST_TEST((names_in_path("\xc3\xa4 b/c") == std::vector<std::string>{"\xc3\xa4 b", "c"}));
  BOOST_TEST(fs::is_empty(inside));
}

BOOST_AUTO_TEST_CASE(links_are_not_followed_wherever_they_stand_and_lead) {  // DA-2
  const auto outside = outer.path() / "outside";
  fs::create_directories(outside / "a");
  fs::create_directory(inside / "real");
  fs::create_directory_symlink(outside, inside / "out");
  fs::create_directory_symlink(outside / "none", inside / "dangling");
  fs::create_directory_symlink("real", inside / "within");
  for (const std::string link : {"out", "dangling", "within"})
    for (const auto& path : {link, link + "/a", link + "/a/b", link + "/none"}) check_refused(path, "symbolic link");
  fs::create_directory_symlink("../out", inside / "real/deep");
  check_refused("real/deep/a", "'real/deep' is a symbolic link");
  BOOST_TEST(std::distance(fs::recursive_directory_iterator(outside), {}) == 1);
}

BOOST_AUTO_TEST_CASE(a_refusal_does_not_tell_what_lies_outside) {  // DA-4
  const auto text = [&](const std::string& path) {
    try {
      data.find_or_make(path);
    } catch (const troupe::error& problem) {
      return std::string(problem.what());
    }
    return std::string();
  };
  const auto with = [](std::string whole, const std::string& from) {
    return whole.replace(whole.find(from), from.size(), "X");
  };
  BOOST_TEST(with(text("/etc/passwd"), "/etc/passwd") == with(text("/etc/none"), "/etc/none"));
  fs::create_symlink("/etc/passwd", inside / "there");
  fs::create_symlink("/etc/none", inside / "gone");
  BOOST_TEST(with(text("there/x"), "there") == with(text("gone/x"), "gone"));
  for (const auto* path : {"../x", "there/x", "/etc"}) BOOST_TEST(!contains(text(path), outer.path().string()));
}

BOOST_AUTO_TEST_CASE(the_folder_stays_the_one_that_was_opened) {  // DA-3
  fs::rename(inside, outer.path() / "moved");
  fs::create_directory(outer.path() / "other");
  fs::create_directory_symlink(outer.path() / "other", inside);
  data.find_or_make("run");
  BOOST_TEST(fs::is_directory(outer.path() / "moved/run"));
  BOOST_TEST(fs::is_empty(outer.path() / "other"));
}

BOOST_AUTO_TEST_CASE(a_folder_that_cannot_be_is_refused_at_the_start) {  // DA-3
  const auto file = outer.write("file", "text");
  BOOST_CHECK_EXCEPTION(data_folder{file}, troupe::error, names("'" + file + "' can't be"));
  BOOST_CHECK_EXCEPTION(data_folder{file + "/below"}, troupe::error, names("below' can't be made"));
  BOOST_CHECK_EXCEPTION(data_folder{"/proc/self"}, troupe::error, names("'/proc/self' can't be written to"));
}

BOOST_AUTO_TEST_SUITE_END()
