// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/nodes/system_config.hpp>

#include <filesystem>
#include <fstream>

#include <boost/test/unit_test.hpp>
#include <caf/actor_system.hpp>
#include <caf/io/middleman.hpp>
#include <caf/scheduler/test_coordinator.hpp>

#include <troupe/actors/settings.hpp>
#include <troupe/messages/messages.hpp>

namespace {

// While an object of this class lives, the working folder of the process is a new folder.
class working_folder {
 public:
  working_folder() : before_(std::filesystem::current_path()) {
    auto pattern = (std::filesystem::temp_directory_path() / "troupe-XXXXXX").string();
    BOOST_TEST_REQUIRE(mkdtemp(pattern.data()) != nullptr);
    here_ = pattern;
    std::filesystem::current_path(here_);
  }
  ~working_folder() {
    std::filesystem::current_path(before_);
    std::filesystem::remove_all(here_);
  }

 private:
  std::filesystem::path before_;
  std::filesystem::path here_;
};

}  // namespace

// SC-1
BOOST_AUTO_TEST_CASE(a_settings_file_in_the_working_folder_changes_nothing) {
  working_folder folder;
  std::ofstream("caf-application.ini") << "[scheduler]\npolicy='stealing'\nmax-threads=7\n[middleman]\nworkers=3\n";
  troupe::nodes::system_config config{troupe::settings{}};
  caf::actor_system system{config};
  BOOST_TEST((caf::get_or(system.config(), "scheduler.policy", caf::atom("none")) == caf::atom("sharing")));
  BOOST_TEST(caf::get_or(system.config(), "scheduler.max-threads", std::size_t{0}) == 2);
  BOOST_TEST(caf::get_or(system.config(), "middleman.workers", std::size_t{9}) == 0);
}

// SC-2
BOOST_AUTO_TEST_CASE(the_network_is_there_without_heartbeats_of_its_own) {
  troupe::nodes::system_config config{troupe::settings{}};
  caf::actor_system system{config};
  BOOST_TEST(system.has_middleman());
  const auto never = caf::timespan{-1};
  BOOST_TEST((caf::get_or(system.config(), "middleman.heartbeat-interval", never) == caf::timespan{0}));
}

BOOST_AUTO_TEST_CASE(messages_have_names_that_stay) {
  troupe::nodes::system_config config{troupe::settings{}};
  BOOST_TEST(config.type_names_by_rtti.count(typeid(troupe::hello)) == 1);
  BOOST_TEST(config.type_names_by_rtti.count(typeid(troupe::propagate_gradients)) == 1);
}

BOOST_AUTO_TEST_CASE(tests_get_the_deterministic_scheduler_and_no_network) {
  troupe::nodes::system_config config{troupe::nodes::system_config::for_tests{}};
  caf::actor_system system{config};
  BOOST_TEST(!system.has_middleman());
  BOOST_TEST(dynamic_cast<caf::scheduler::test_coordinator*>(&system.scheduler()) != nullptr);
}
