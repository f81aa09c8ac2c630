// SPDX-License-Identifier: BSD-3-Clause
#include "bench/savina/programs.hpp"

#include <boost/test/unit_test.hpp>

#include <filesystem>
#include <sstream>

#include <caf/actor_system_config.hpp>
#include <caf/atom.hpp>
#include <caf/io/middleman.hpp>

using namespace troupe::bench::savina;

namespace {

std::map<std::string, values> read(const std::string& text, bool quick = false) {
  std::istringstream from(text);
  return read_parameters(from, quick);
}

std::map<std::string, values> quick_parameters() {
  return read_parameters(std::filesystem::path(TROUPE_SOURCE_DIR "/bench/savina/parameters.txt"), true);
}

}  // namespace

BOOST_AUTO_TEST_CASE(parameters_are_read_by_program_and_name) {
  const auto all = read("# nothing\n\nring  actors=3 hops=40  # more\nbig actors=5\n");
  BOOST_TEST(all.size() == 2u);
  BOOST_TEST(all.at("ring")["actors"] == 3);
  BOOST_TEST(all.at("ring")["hops"] == 40);
  BOOST_TEST(all.at("big")["actors"] == 5);
  BOOST_TEST(all.at("ring").arguments() == " actors=3 hops=40");
  BOOST_CHECK_EXCEPTION(all.at("big")["hops"], std::runtime_error, [](const auto& wrong) {
    return std::string(wrong.what()) == "the program has no parameter 'hops'; there are: actors=5";
  });
}

BOOST_AUTO_TEST_CASE(lines_of_quick_runs_replace_parameters_in_quick_runs_alone) {
  const std::string text = "ring actors=3 hops=40\nquick ring hops=4\n";
  BOOST_TEST(read(text).at("ring")["hops"] == 40);
  BOOST_TEST(read(text, true).at("ring")["hops"] == 4);
  BOOST_TEST(read(text, true).at("ring")["actors"] == 3);
}

BOOST_AUTO_TEST_CASE(a_malformed_line_is_refused_with_its_number) {
  for (const std::string wrong : {"hops", "hops=", "=4", "hops=4x", "hops=0", "hops=-4", "hops=99999999999999999999"})
    BOOST_CHECK_EXCEPTION(read("ring actors=3\nring " + wrong + "\n"), std::runtime_error, [&](const auto& said) {
      return std::string(said.what()) == "line 2 has '" + wrong + "', expected NAME=NUMBER above 0";
    });
  BOOST_CHECK_THROW(read_parameters(std::filesystem::path("/no/such/file"), false), std::runtime_error);
}

BOOST_AUTO_TEST_CASE(each_program_has_parameters_for_both_kinds_of_runs) {
  const auto whole = read_parameters(std::filesystem::path(TROUPE_SOURCE_DIR "/bench/savina/parameters.txt"), false);
  const auto quick = quick_parameters();
  BOOST_TEST(all_programs().size() >= 14u);
  for (const auto& each : all_programs()) {
    BOOST_TEST(each.count(quick.at(each.name)) < each.count(whole.at(each.name)), each.name);
    BOOST_TEST(each.actors(whole.at(each.name)) > 1, each.name);
  }
}

BOOST_AUTO_TEST_CASE(each_program_has_the_expected_result_in_each_world) {
  const auto parameters = quick_parameters();
  for (const auto policy : {caf::atom("stealing"), caf::atom("sharing")}) {
    caf::actor_system_config config;
    config.set("scheduler.policy", policy);
    config.set("scheduler.max-threads", std::size_t{2});
    caf::actor_system system(config);
    for (const auto& each : all_programs()) {
      BOOST_TEST_CONTEXT(each.name) {
        BOOST_CHECK_NO_THROW(each.on_caf(system, spawn_mode::event_based, parameters.at(each.name)));
      }
    }
  }
  caf::actor_system_config config;
  config.load<caf::io::middleman>();
  caf::actor_system system(config);
  for (const auto& each : message_programs()) {
    BOOST_TEST_CONTEXT(each.name) { BOOST_CHECK_NO_THROW(each.on_caf(system, spawn_mode::brokers, parameters.at(each.name))); }
  }
  for (const auto& each : all_programs()) {
    BOOST_TEST_CONTEXT(each.name) {
      const auto& of = parameters.at(each.name);
      BOOST_CHECK_NO_THROW(each.losing(of, 0));
      if (each.actors(of) > most_threads) continue;
      BOOST_CHECK_NO_THROW(each.on_caf(system, spawn_mode::detached, of));
      BOOST_CHECK_NO_THROW(each.on_threads(of));
    }
  }
}

// Message 13 is in the middle of each program. For the sieve it is a prime.
BOOST_AUTO_TEST_CASE(each_program_notices_a_lost_message) {
  const auto parameters = quick_parameters();
  for (const auto& each : all_programs()) {
    BOOST_TEST_CONTEXT(each.name) { BOOST_CHECK_THROW(each.losing(parameters.at(each.name), 13), std::runtime_error); }
  }
}

BOOST_AUTO_TEST_CASE(the_times_of_answers_are_told_if_they_are_asked_for) {
  const auto parameters = quick_parameters();
  for (const auto& each : all_programs()) {
    if (each.name != "ping_pong" && each.name != "big") continue;
    auto of = parameters.at(each.name);
    BOOST_TEST(each.losing(of, 0).trips_us.empty(), each.name);
    of.set("trips", 1);
    BOOST_TEST(each.losing(of, 0).trips_us.size() == static_cast<std::size_t>(each.count(of)), each.name);
  }
}
