// SPDX-License-Identifier: BSD-3-Clause
#include "apps/charlm/metrics.hpp"

#include <boost/test/unit_test.hpp>

#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <sstream>
#include <stdexcept>
#include <string>

#include <nlohmann/json.hpp>

#include "support/temporary_folder.hpp"

using namespace troupe::apps::charlm;
using namespace troupe::apps::test;

BOOST_AUTO_TEST_SUITE(metrics_of_a_run)

BOOST_AUTO_TEST_CASE(metrics_are_a_json_object_a_line) {  // MX-1
  const temporary_folder folder;
  const auto path = folder.path() / "metrics.jsonl";
  metrics kept{path, -1};
  kept.add({1, 4.5, 1e-3, 2.5, 24000, 0.1});
  kept.add_validation(1, 4.4, 0.2);
  std::istringstream lines(content_of(path));
  std::string line;
  std::getline(lines, line);
  BOOST_TEST(nlohmann::json::parse(line)["loss"] == 4.5);
  std::getline(lines, line);
  BOOST_TEST(nlohmann::json::parse(line)["validation_loss"] == 4.4);
}

BOOST_AUTO_TEST_CASE(a_run_that_continues_drops_later_steps) {  // MX-2
  const temporary_folder folder;
  const auto path = folder.path() / "metrics.jsonl";
  {
    metrics kept{path, -1};
    for (int step = 1; step <= 10; ++step) kept.add({step, 1.0 / step, 0, 0, 0, 0});
    kept.add_validation(5, 3, 0);
    kept.add_validation(10, 2, 0);
  }
  metrics again{path, 6};
  BOOST_TEST(again.losses().size() == 6u);
  BOOST_TEST(again.validation_losses().size() == 1u);
  again.add({7, 1, 0, 0, 0, 0});
  const auto content = content_of(path);
  BOOST_TEST(std::count(content.begin(), content.end(), '\n') == 8);
}

BOOST_AUTO_TEST_CASE(a_line_for_which_there_is_no_space_leaves_the_file_as_it_was) {  // MX-1, MX-3
  const temporary_folder folder;
  const auto path = folder.path() / "metrics.jsonl";
  metrics kept{path, -1};
  kept.add({1, 4.5, 1e-3, 2.5, 24000, 0.1});
  const auto before = content_of(path);
  signal(SIGXFSZ, SIG_IGN);
  rlimit unlimited{};
  getrlimit(RLIMIT_FSIZE, &unlimited);
  const rlimit tight{before.size() + 20, unlimited.rlim_max};
  setrlimit(RLIMIT_FSIZE, &tight);
  BOOST_CHECK_EXCEPTION(kept.add({2, 4.5, 1e-3, 2.5, 24000, 0.1}), std::runtime_error,
                        says({"metrics.jsonl", "free some space"}));
  setrlimit(RLIMIT_FSIZE, &unlimited);
  BOOST_TEST(content_of(path) == before);
  kept.add({2, 4.5, 1e-3, 2.5, 24000, 0.1});
  BOOST_TEST(metrics(path, 2).losses().size() == 2u);
}

BOOST_AUTO_TEST_SUITE_END()
