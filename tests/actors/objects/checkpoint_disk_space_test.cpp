// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/objects/checkpoint.hpp>

#include <filesystem>
#include <limits>
#include <string>

#include <boost/test/unit_test.hpp>

#include <actors/temporary_folder.hpp>
#include <troupe/messages/errors.hpp>

using namespace troupe;
using namespace troupe::test;

BOOST_AUTO_TEST_SUITE(space_for_checkpoints)

BOOST_AUTO_TEST_CASE(a_folder_with_space_is_accepted_and_left_as_it_was) {  // XR-1
  temporary_folder folder;
  objects::expect_disk_space(folder.path(), 1000);
  objects::expect_disk_space(folder / "runs/1/checkpoint", 1000);
  BOOST_TEST(folder.files().empty());
}

BOOST_AUTO_TEST_CASE(a_disk_with_too_little_space_is_told_with_the_folder_and_what_to_do) {
  temporary_folder folder;
  const auto text =
    text_of<error>([&] { objects::expect_disk_space(folder / "run", std::numeric_limits<std::uint64_t>::max() / 2); });
  BOOST_TEST(contains(text, "expected room for 9223372036855 MB of checkpoints in the folder '" + (folder / "run")));
  BOOST_TEST(contains(text, "make room on the disk, or name another folder"));
}

BOOST_AUTO_TEST_CASE(a_folder_that_can_not_be_written_is_told_with_what_to_do) {
  temporary_folder folder;
  write_text(folder / "file", "");
  const auto text = text_of<error>([&] { objects::expect_disk_space(folder / "file/run", 1); });
  BOOST_TEST(contains(text, "expected to write checkpoints to the folder '" + (folder / "file/run") + "'"));
  BOOST_TEST(contains(text, "no file can be made in '" + (folder / "file") + "': Not a directory"));
  BOOST_TEST(contains(text, "name another folder"));
}

BOOST_AUTO_TEST_SUITE_END()
