// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/nodes/node_services.hpp>

#include <boost/test/unit_test.hpp>

#include <filesystem>
#include <stdexcept>
#include <string>

#include <caf/actor_cast.hpp>
#include <caf/actor_system.hpp>
#include <caf/scoped_actor.hpp>

#include <troupe/actors/logging/node_log.hpp>
#include <troupe/actors/nodes/system_config.hpp>

#include "actors/lone_services.hpp"
#include "actors/temporary_folder.hpp"

using namespace troupe;

BOOST_AUTO_TEST_SUITE(services_of_a_node)

BOOST_AUTO_TEST_CASE(published_actors_are_found_by_name_until_the_end) {
  nodes::system_config config{nodes::system_config::for_tests{}};
  caf::actor_system system{config};
  caf::scoped_actor one{system};
  caf::scoped_actor two{system};
  const auto handle = [](const caf::scoped_actor& of) { return caf::actor_cast<caf::strong_actor_ptr>(of); };
  nodes::published_actors published;
  BOOST_TEST((published.find("one") == nullptr));
  published.add("one", handle(one));
  published.add("two", handle(two));
  BOOST_TEST((published.find("one") == handle(one)));
  BOOST_TEST((published.find("two") == handle(two)));
  BOOST_TEST(published.stop().size() == 2u);
  BOOST_TEST((published.find("one") == nullptr));
}

BOOST_AUTO_TEST_CASE(the_handler_of_lost_peers_is_told_and_its_exceptions_go_no_further) {
  nodes::peer_news_handler handler{logging::node_log{}, "on_peer_down"};
  BOOST_CHECK_NO_THROW(handler.tell("b", "it has left"));
  std::string told;
  handler.set([&](const std::string& name, const std::string& reason) { told = name + ": " + reason; });
  handler.tell("b", "it has left");
  BOOST_TEST(told == "b: it has left");
  handler.set([](const std::string&, const std::string&) { throw std::runtime_error("of the user"); });
  BOOST_CHECK_NO_THROW(handler.tell("b", "it has left"));
}

// DA-3
BOOST_AUTO_TEST_CASE(a_log_file_may_lie_in_a_new_data_folder) {
  const test::temporary_folder folder;
  auto options = test::lone_services::named();
  options.data_dir = folder / "data";
  options.log_file = folder / "data/log";
  const nodes::node_services services(nullptr, options, [] {});
  BOOST_TEST(std::filesystem::exists(options.log_file));
}

BOOST_AUTO_TEST_CASE(call_short_what_the_settings_call_short) {
  for (const int limit : {0, 20}) {
    auto options = test::lone_services::named();
    options.short_work = std::chrono::microseconds(limit);
    test::lone_services here(true, options);
    here.services.times.note("f", 10'000);
    BOOST_TEST(here.services.times.is_short("f") == (limit > 10));
  }
}

BOOST_AUTO_TEST_SUITE_END()
