// SPDX-License-Identifier: BSD-3-Clause
#include "apps/charlm/run_folder.hpp"

#include <boost/test/unit_test.hpp>

#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/temporary_folder.hpp"

using namespace troupe::apps::charlm;
using namespace troupe::apps::test;

BOOST_AUTO_TEST_SUITE(folder_of_a_run)

BOOST_AUTO_TEST_CASE(a_full_disk_is_named_with_the_file) {  // RF-3
  BOOST_CHECK_EXCEPTION(run_folder(std::filesystem::path("/dev/full")), std::runtime_error, says({"/dev/full", "--out"}));
  const temporary_folder folder;
  const run_folder here{folder.path() / "run"};
  BOOST_CHECK_EXCEPTION(here.expect_room(std::uintmax_t{1} << 60), std::runtime_error, says({"run", "no space left", "--out"}));
  BOOST_CHECK_NO_THROW(here.expect_room(1));
}

BOOST_AUTO_TEST_CASE(a_folder_has_one_run_at_a_time) {  // RF-1
  const temporary_folder folder;
  {
    const run_folder first{folder.path() / "run"};
    BOOST_CHECK_EXCEPTION(run_folder{folder.path() / "run"}, std::runtime_error, says({"another run", "--out"}));
  }
  BOOST_CHECK_NO_THROW(run_folder{folder.path() / "run"});
}

BOOST_AUTO_TEST_CASE(an_earlier_run_is_set_aside_and_other_files_stay) {  // RF-2
  const temporary_folder folder;
  folder.write("notes.txt", "mine");
  run_folder here{folder.path()};
  BOOST_TEST(!here.set_aside().has_value());
  const auto write_checkpoint = [&] {
    std::filesystem::create_directory(folder.path() / "checkpoint");
    folder.write("checkpoint/checkpoint.json", "{}");
  };
  write_checkpoint();
  folder.write("summary.json", "first");
  BOOST_TEST(here.set_aside().value().where == folder.path() / "previous");
  write_checkpoint();
  folder.write("metrics.jsonl", "second");
  BOOST_TEST(here.set_aside().value().replaced);
  BOOST_TEST(content_of(folder.path() / "notes.txt") == "mine");
  BOOST_TEST(content_of(folder.path() / "previous" / "metrics.jsonl") == "second");
  BOOST_TEST(!std::filesystem::exists(folder.path() / "previous" / "summary.json"));
  BOOST_TEST(!std::filesystem::exists(folder.path() / "metrics.jsonl"));
}

BOOST_AUTO_TEST_CASE(a_run_without_a_checkpoint_costs_no_run_that_has_one) {  // RF-2
  const temporary_folder folder;
  run_folder here{folder.path()};
  std::filesystem::create_directory(folder.path() / "checkpoint");
  folder.write("checkpoint/checkpoint.json", "good");
  BOOST_TEST(!here.set_aside().value().replaced);
  for (const char* failed : {"third", "fourth"}) {
    folder.write("metrics.jsonl", failed);
    BOOST_TEST(here.set_aside().value().where == folder.path() / "unfinished");
    BOOST_TEST(content_of(folder.path() / "unfinished" / "metrics.jsonl") == failed);
  }
  BOOST_TEST(content_of(folder.path() / "previous" / "checkpoint" / "checkpoint.json") == "good");
}

BOOST_AUTO_TEST_CASE(a_run_that_is_abandoned_leaves_only_whole_files) {
  const temporary_folder folder;
  const run_folder here{folder.path()};
  std::filesystem::create_directory(folder.path() / "checkpoint");
  const std::vector<std::string> whole{"metrics.jsonl", "checkpoint/stage1.0123.pt"};
  const std::vector<std::string> others{"loss.svg.part", "checkpoint/stage2.0123.pt.part"};
  for (const auto& names : {whole, others})
    for (const auto& name : names) folder.write(name, "something");
  here.abandon();
  for (const auto& name : whole) BOOST_TEST(std::filesystem::exists(folder.path() / name), name);
  for (const auto& name : others) BOOST_TEST(!std::filesystem::exists(folder.path() / name), name);
  BOOST_TEST(!std::filesystem::exists(folder.path() / ".lock"));
}

BOOST_AUTO_TEST_SUITE_END()
