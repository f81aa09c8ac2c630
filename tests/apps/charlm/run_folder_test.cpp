// SPDX-License-Identifier: BSD-3-Clause
#include "apps/charlm/run_folder.hpp"

#include <boost/test/unit_test.hpp>

#include <sys/syscall.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/forked_child.hpp"
#include "support/refused_calls.hpp"
#include "support/temporary_folder.hpp"

using namespace troupe::apps::charlm;
using namespace troupe::apps::test;

BOOST_AUTO_TEST_SUITE(folder_of_a_run)

BOOST_AUTO_TEST_CASE(a_full_disk_is_named_with_the_file) {  // RF-3
  BOOST_CHECK_EXCEPTION(run_folder(std::filesystem::path("/dev/full")), std::runtime_error, says({"/dev/full", "--out"}));
  const temporary_folder folder;
  const run_folder here{folder.path() / "run"};
  BOOST_CHECK_EXCEPTION(here.expect_disk_space(std::uintmax_t{1} << 60), std::runtime_error,
                        says({"run", "no space left", "--out"}));
  BOOST_CHECK_NO_THROW(here.expect_disk_space(1));
}

BOOST_AUTO_TEST_CASE(a_folder_has_one_run_at_a_time) {  // RF-1, FO-1
  const temporary_folder folder;
  {
    const run_folder first{folder.path() / "run"};
    BOOST_CHECK_EXCEPTION(run_folder{folder.path() / "run"}, std::runtime_error, says({"another run", "--out"}));
  }
  BOOST_CHECK_NO_THROW(run_folder{folder.path() / "run"});
}

BOOST_AUTO_TEST_CASE(a_folder_without_locks_has_the_run_that_made_the_lock_file) {  // FO-1
  const temporary_folder folder;
  const auto path = folder.path() / "run";
  for (const int reason : {ENOSYS, ENOLCK, EOPNOTSUPP}) {
    const auto status = troupe::test::status_of_child([&] {
      if (!troupe::test::refuse_calls({SYS_flock}, reason)) return 1;
      {
        const run_folder first{path};
        try {
          run_folder{path};
          return 2;
        } catch (const std::runtime_error& refused) {
          if (!says({"has no locks", std::strerror(reason), path / ".lock", "remove", "--out"})(refused)) return 3;
        }
      }
      const run_folder next{path};
      return std::filesystem::exists(path / ".lock") ? 0 : 4;
    });
    BOOST_TEST(status == 0, std::strerror(reason));
    std::filesystem::remove(path / ".lock");
  }
}

BOOST_AUTO_TEST_CASE(every_earlier_run_is_kept_and_other_files_stay) {  // RF-2
  const temporary_folder folder;
  folder.write("notes.txt", "mine");
  std::filesystem::create_directory(folder.path() / "previous");  // of an older version of troupe
  folder.write("previous/metrics.jsonl", "old");
  const run_folder here{folder.path()};
  BOOST_TEST(!here.set_aside().has_value());
  for (const std::string run : {"1", "2", "3"}) {
    if (run != "2") {  // the second one has no checkpoint
      std::filesystem::create_directory(folder.path() / "checkpoint");
      folder.write("checkpoint/checkpoint.json", run);
    }
    folder.write("metrics.jsonl", run);
    BOOST_TEST(here.set_aside().value() == (folder.path() / ("previous-" + run)).string());
  }
  for (const std::string run : {"1", "2", "3"})
    BOOST_TEST(content_of(folder.path() / ("previous-" + run) / "metrics.jsonl") == run);
  for (const std::string run : {"1", "3"})
    BOOST_TEST(content_of(folder.path() / ("previous-" + run) / "checkpoint" / "checkpoint.json") == run);
  BOOST_TEST(content_of(folder.path() / "notes.txt") == "mine");
  BOOST_TEST(content_of(folder.path() / "previous" / "metrics.jsonl") == "old");
  BOOST_TEST(!std::filesystem::exists(folder.path() / "metrics.jsonl"));
  BOOST_TEST(!here.set_aside().has_value());
}

BOOST_AUTO_TEST_CASE(a_run_that_may_be_overwritten_is_removed_alone) {  // RF-2
  const temporary_folder folder;
  const run_folder here{folder.path()};
  BOOST_TEST(!here.remove_run());
  folder.write("notes.txt", "mine");
  for (const char* run : {"first", "second"}) {
    folder.write("metrics.jsonl", run);
    if (run == std::string("first")) here.set_aside();
  }
  BOOST_TEST(here.remove_run());
  BOOST_TEST(!std::filesystem::exists(folder.path() / "metrics.jsonl"));
  BOOST_TEST(content_of(folder.path() / "notes.txt") == "mine");
  BOOST_TEST(content_of(folder.path() / "previous-1" / "metrics.jsonl") == "first");
}

BOOST_AUTO_TEST_CASE(a_run_that_is_abandoned_leaves_only_whole_files) {
  const temporary_folder folder;
  const run_folder here{folder.path()};
  std::filesystem::create_directory(folder.path() / "checkpoint");
  const std::vector<std::string> whole{"metrics.jsonl", "checkpoint/stage1.0123.safetensors"};
  const std::vector<std::string> others{"loss.svg.part", "checkpoint/stage2.0123.safetensors.part"};
  for (const auto& names : {whole, others})
    for (const auto& name : names) folder.write(name, "something");
  here.abandon();
  for (const auto& name : whole) BOOST_TEST(std::filesystem::exists(folder.path() / name), name);
  for (const auto& name : others) BOOST_TEST(!std::filesystem::exists(folder.path() / name), name);
  BOOST_TEST(!std::filesystem::exists(folder.path() / ".lock"));
}

BOOST_AUTO_TEST_SUITE_END()
