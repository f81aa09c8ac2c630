// SPDX-License-Identifier: BSD-3-Clause
#include <boost/test/unit_test.hpp>

#include <filesystem>
#include <string>

#include <troupe/actors/support/data_folder.hpp>
#include <troupe/messages/errors.hpp>

#include "support/contains.hpp"
#include "support/temporary_folder.hpp"

namespace fs = std::filesystem;
using troupe::support::data_folder;
using troupe::test::contains;

namespace {

auto names(const std::string& text) {
  return [=](const troupe::error& problem) { return contains(problem.what(), text) && contains(problem.what(), "--data-dir"); };
}

struct with_folder {
  troupe::apps::test::temporary_folder outer;
  fs::path inside = fs::canonical(outer.path()) / "made" / "data";
  data_folder data{(outer.path() / "made" / "data").string()};
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(folder_of_data, with_folder)

BOOST_AUTO_TEST_CASE(relative_paths_are_below_the_folder_which_is_made) {  // DA-1, DA-3
  BOOST_TEST(fs::is_directory(inside));
  BOOST_TEST(fs::is_empty(inside));
  BOOST_TEST(data.path_of("run/part") == (inside / "run/part").string());
  BOOST_TEST(data.path_of((inside / "part").string()) == (inside / "part").string());
  BOOST_TEST(!fs::exists(inside / "run"));
  BOOST_TEST(data.path_to_write("run/part") == (inside / "run/part").string());
  BOOST_TEST(fs::is_directory(inside / "run"));
  BOOST_TEST(data_folder().path_of("../x") == "../x");
  BOOST_TEST(data_folder().path_to_write("/no/such/x") == "/no/such/x");
}

BOOST_AUTO_TEST_CASE(paths_that_lead_out_are_refused) {  // DA-2
  fs::create_directory_symlink("/tmp", inside / "link");
  fs::create_directory(inside.string() + "2");
  for (const std::string path : {"../x", "a/../../x", "/etc/passwd", "link/x", "link", ".", ""})
    BOOST_CHECK_EXCEPTION(data.path_of(path), troupe::error, names("'" + path + "' leads out"));
  BOOST_CHECK_EXCEPTION(data.path_to_write(inside.string() + "2/x"), troupe::error, names("2/x' leads out"));
}

BOOST_AUTO_TEST_CASE(a_folder_that_cannot_be_is_refused_at_the_start) {  // DA-3
  const auto file = outer.write("file", "text");
  BOOST_CHECK_EXCEPTION(data_folder{file}, troupe::error, names("'" + file + "' can't be"));
  BOOST_CHECK_EXCEPTION(data_folder{file + "/below"}, troupe::error, names("below' can't be made"));
  BOOST_CHECK_EXCEPTION(data_folder{"/proc/self"}, troupe::error, names("'/proc/self' can't be written to"));
}

BOOST_AUTO_TEST_SUITE_END()
