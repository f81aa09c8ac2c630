// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/support/durable_file.hpp>

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <actors/size_limit.hpp>
#include <actors/temporary_folder.hpp>
#include <troupe/messages/errors.hpp>

#include "support/contains.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

std::vector<mode_t> synced;  // types (file, folder) of the descriptors that fsync() got, in this order

}  // namespace

// Replaces fsync() of the C library in this program: notes in `synced` what the tested code makes safe on the disk.
extern "C" int fsync(int descriptor) {
  struct stat what {};
  ::fstat(descriptor, &what);
  synced.push_back(what.st_mode & S_IFMT);
  return static_cast<int>(::syscall(SYS_fsync, descriptor));
}

namespace {

void write(const std::string& path, const std::string& text) {
  support::durable_file file(path);
  file.write(text.data(), text.size());
  file.commit();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(durable_files)

BOOST_AUTO_TEST_CASE(a_file_appears_under_its_name_with_the_commit_and_nothing_beside_it) {  // DF-1, DF-3
  temporary_folder folder;
  write_text(folder / "a", "before");
  {
    support::durable_file file(folder / "a");
    file.write("after", 5);
    BOOST_TEST(read_text(folder / "a") == "before");
    const auto digest = file.commit();
    BOOST_TEST(digest.bytes == 5u);
    BOOST_TEST((digest == support::file_digest::of(folder / "a")));
  }
  BOOST_TEST(read_text(folder / "a") == "after");
  BOOST_TEST((folder.files() == std::set<std::string>{"a"}));
}

BOOST_AUTO_TEST_CASE(the_file_is_on_the_disk_before_its_name_and_the_name_before_the_commit_returns) {  // DF-2
  temporary_folder folder;
  synced.clear();
  write(folder / "a", "text");
  BOOST_TEST((synced == std::vector<mode_t>{S_IFREG, S_IFDIR}));
}

BOOST_AUTO_TEST_CASE(a_file_that_is_not_committed_leaves_the_old_one) {  // DF-1, DF-3
  temporary_folder folder;
  write_text(folder / "a", "before");
  {
    support::durable_file file(folder / "a");
    file.write("after", 5);
  }
  BOOST_TEST(read_text(folder / "a") == "before");
  BOOST_TEST((folder.files() == std::set<std::string>{"a"}));
}

BOOST_AUTO_TEST_CASE(a_file_that_another_program_has_made_meanwhile_is_kept_on_request) {  // DF-1, DF-3
  temporary_folder folder;
  {
    support::durable_file file(folder / "a");
    file.write("after", 5);
    write_text(folder / "a", "of another program");
    BOOST_CHECK_EXCEPTION(file.commit(false), error, [&](const error& x) {
      return test::contains(x.what(), folder / "a") && test::contains(x.what(), "exists");
    });
  }
  BOOST_TEST(read_text(folder / "a") == "of another program");
  BOOST_TEST((folder.files() == std::set<std::string>{"a"}));
}

BOOST_AUTO_TEST_CASE(a_full_disk_is_an_error_with_path_and_reason_and_leaves_the_old_file) {
  temporary_folder folder;
  write_text(folder / "a", "before");
  std::filesystem::create_symlink("/dev/full", folder / "a.part");
  const auto text = text_of<error>([&] { write(folder / "a", std::string(100'000, 'x')); });
  BOOST_TEST(contains(text, folder / "a"));
  BOOST_TEST(contains(text, "No space left on device; make room"));
  BOOST_TEST(read_text(folder / "a") == "before");
  BOOST_TEST((folder.files() == std::set<std::string>{"a"}));
}

BOOST_AUTO_TEST_CASE(a_limit_met_in_the_middle_of_a_write_is_an_error_too) {
  temporary_folder folder;
  size_limit limit(1000);
  const auto text = text_of<error>([&] { write(folder / "a", std::string(100'000, 'x')); });
  BOOST_TEST(contains(text, "File too large"));
  BOOST_TEST(folder.files().empty());
}

BOOST_AUTO_TEST_CASE(a_path_that_can_not_be_written_to_is_named) {
  temporary_folder folder;
  write_text(folder / "file", "");
  const auto text = text_of<error>([&] { support::durable_file file(folder / "file/a"); });
  BOOST_TEST(contains(text, "can't create '" + (folder / "file/a") + "': Not a directory"));
}

BOOST_AUTO_TEST_SUITE_END()
