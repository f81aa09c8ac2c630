// SPDX-License-Identifier: BSD-3-Clause
#include "apps/charlm/cluster.hpp"

#include <boost/test/unit_test.hpp>

#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "actors/loopback_nodes.hpp"
#include "apps/charlm/stage_module.hpp"
#include "support/loopback_socket.hpp"
#include "support/temporary_folder.hpp"

using namespace troupe::apps;
using namespace troupe::apps::charlm;
using troupe::apps::test::says;
using troupe::test::becomes_true;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(stage_processes)

namespace {

// stage_nodes starts the running program, and here the running program is this test. Started as `troupe node`, this test waits
// to be killed, or ends with status 7 if TROUPE_TEST_STAGE_FAILS is set, and with status 8 if it is to load CUDA's kernels.
const bool is_no_stage = [] {
  std::ifstream command("/proc/self/cmdline");
  std::string word;
  std::getline(command, word, '\0');
  std::getline(command, word, '\0');
  if (word == "node") {
    while (std::getline(command, word, '\0'))
      if (word == "--cuda") _exit(8);
    if (getenv("TROUPE_TEST_STAGE_FAILS") != nullptr) _exit(7);
    while (true) pause();
  }
  return true;
}();

troupe::settings named(const std::string& name) {
  troupe::settings options;
  options.name = name;
  return options;
}

std::vector<pid_t> children() {
  std::vector<pid_t> found;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream in(thread.path() / "children");
    for (pid_t pid = 0; in >> pid;) found.push_back(pid);
  }
  return found;
}

struct stopped_at_once {
  stopped_at_once() { stop.request(); }
  stop_signal stop;
};

}  // namespace

BOOST_AUTO_TEST_CASE(none_outlives_the_object_that_started_it) {  // SN-1
  BOOST_TEST(is_no_stage);
  troupe::node driver{named("driver")};
  const stopped_at_once returns_early;
  {
    const auto nodes = stage_nodes::start(driver, 2, returns_early.stop);
    BOOST_TEST(nodes.names() == (std::vector<std::string>{"stage1", "stage2"}), boost::test_tools::per_element());
    BOOST_TEST(children().size() == 2u);
  }
  BOOST_TEST(children().empty());
}

BOOST_AUTO_TEST_CASE(a_lost_one_is_reported_with_its_name_its_number_and_how_it_ended) {  // SN-2
  troupe::node driver{named("driver")};
  const stopped_at_once returns_early;
  auto nodes = stage_nodes::start(driver, 1, returns_early.stop);
  BOOST_TEST(!nodes.lost(0ms));
  const auto all = children();
  BOOST_REQUIRE(all.size() == 1u);
  kill(all[0], SIGKILL);
  BOOST_TEST(nodes.lost(20s).value_or("") == "stage1 (pid " + std::to_string(all[0]) + ") killed by signal 9 (Killed)");
}

BOOST_AUTO_TEST_CASE(one_that_has_ended_is_started_again) {  // SN-3
  troupe::node driver{named("driver")};
  const stopped_at_once returns_early;
  auto nodes = stage_nodes::start(driver, 2, returns_early.stop);
  BOOST_TEST(nodes.missing(driver) == (std::vector<std::string>{"stage1", "stage2"}), boost::test_tools::per_element());
  const auto before = children();
  kill(before.at(0), SIGKILL);
  BOOST_TEST(becomes_true([&] {
    nodes.bring_back(driver);
    const auto now = children();
    return now != before && now.size() == 2;
  }));
}

BOOST_AUTO_TEST_CASE(those_of_a_cluster_file_that_are_gone_are_dialled) {  // SN-3
  troupe::node driver{named("driver")};
  auto options = named("stage");
  options.port = troupe::node{named("finds_a_port")}.port();
  auto stage = std::make_unique<troupe::node>(options);
  const troupe::apps::test::temporary_folder folder;
  auto nodes =
    stage_nodes::join(driver, cluster_file::read(folder.write("cluster.json", R"({"nodes": [{"name": "stage", "port": )" +
                                                                                std::to_string(options.port) + "}]}")));
  BOOST_TEST(nodes.missing(driver).empty());
  stage.reset();  // says farewell: nobody dials it any more
  BOOST_TEST(becomes_true([&] { return !nodes.missing(driver).empty(); }));
  stage = std::make_unique<troupe::node>(options);
  nodes.bring_back(driver);
  BOOST_TEST(nodes.missing(driver).empty());
}

BOOST_AUTO_TEST_CASE(those_that_are_frozen_take_no_longer_than_they_may) {  // SN-4
  troupe::node driver{named("driver")};
  const test::loopback_socket mute;
  const test::temporary_folder folder;
  const auto file =
    cluster_file::read(folder.write("cluster.json", R"({"nodes": [{"name": "frozen", "port": )" + mute.port() + "}]}"));
  const auto begun = std::chrono::steady_clock::now();
  BOOST_CHECK_THROW(stage_nodes::join(driver, file, begun + 200ms), troupe::error);
  BOOST_CHECK_THROW(stage_nodes::join(driver, "127.0.0.1:" + mute.port(), {}, begun), troupe::error);
  BOOST_TEST((std::chrono::steady_clock::now() - begun < driver.options().deadline / 2));
}

BOOST_AUTO_TEST_CASE(only_those_that_can_hold_a_stage_are_kept) {
  troupe::node driver{named("driver")};
  auto options = named("one");
  options.prepare = troupe::apps::charlm::add_stage_type;
  const troupe::node one{options};
  auto joins = named("another_driver");
  joins.join = {"127.0.0.1:" + std::to_string(one.port())};
  const troupe::node other{joins};
  auto nodes = stage_nodes::join(driver, joins.join[0], {});
  BOOST_TEST(nodes.names().size() == 2u);
  nodes.keep_those_for_stages(driver);
  BOOST_TEST(nodes.names() == std::vector<std::string>{"one"}, boost::test_tools::per_element());
  BOOST_TEST(becomes_true([&] { return one.status().objects == 0; }));
}

BOOST_AUTO_TEST_CASE(one_that_does_not_come_up_is_named_and_leaves_none_behind) {  // SN-1, SN-2
  troupe::node driver{named("driver")};
  const stop_signal stop;
  setenv("TROUPE_TEST_STAGE_FAILS", "1", 1);
  BOOST_CHECK_EXCEPTION(stage_nodes::start(driver, 2, stop), std::runtime_error,
                        says({"expected node stage", "exited with 7"}));
  unsetenv("TROUPE_TEST_STAGE_FAILS");
  BOOST_TEST(children().empty());
}

BOOST_AUTO_TEST_CASE(one_for_a_gpu_loads_the_kernels_of_cuda_when_it_starts) {
  troupe::node driver{named("driver")};
  const stop_signal stop;
  BOOST_CHECK_EXCEPTION(stage_nodes::start(driver, 1, stop, {"", true}), std::runtime_error,
                        says({"expected node stage1", "exited with 8"}));
}

BOOST_AUTO_TEST_SUITE_END()
