// SPDX-License-Identifier: BSD-3-Clause
#include <boost/test/unit_test.hpp>

#include <signal.h>

#include <chrono>
#include <fstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <troupe/actors/settings.hpp>

#include "apps/ready_line.hpp"
#include "support/program.hpp"
#include "support/temporary_folder.hpp"

using namespace troupe::apps;
using namespace troupe::apps::test;

namespace {

ready_line ready(program& node) {
  auto line = ready_line::parse(node.line_that([](auto& text) { return ready_line::parse(text).has_value(); }));
  BOOST_REQUIRE_MESSAGE(line, "the node said: " << node.text());
  return *line;
}

/// What the command wrote to stdout: the progress on stderr comes before.
nlohmann::json json_of(program& bench) {
  const auto text = bench.text();
  const auto begin = text.find("\n{\n");
  BOOST_REQUIRE_MESSAGE(begin != std::string::npos, text);
  return nlohmann::json::parse(text.substr(begin));
}

struct two_nodes {
  program first{{"node", "--load", "probe", "--name", "stage1"}};
  std::string address = ready(first).address();
  program second{{"node", "--load", "probe", "--name", "stage2", "--join", address}};
  ready_line of_second = ready(second);
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(each_way_between_two_running_nodes_is_measured, two_nodes) {
  program json({"bench", "--join", address, "--seconds", "0.05", "--json"});
  BOOST_TEST(json.how_it_ends() == "exited with 0", json.text());
  const auto found = json_of(json);
  BOOST_TEST(found.at("nodes").size() == 2u);
  for (const auto& node : found.at("nodes")) BOOST_TEST(node.at("gigaflops").get<double>() > 0);
  std::vector<std::string> ways;
  for (const auto& way : found.at("ways")) {
    ways.push_back(way.at("from").get<std::string>() + ">" + way.at("to").get<std::string>());
    BOOST_TEST(way.at("transport") == "shared memory");
    for (const auto* figure : {"calls", "call_us", "pass_us", "mib_per_s"}) BOOST_TEST(way.at(figure).get<double>() > 0);
    // A figure that stands for one call of 100 needs 100 calls.
    BOOST_TEST(way.at("call_p99_us").is_null() == (way.at("calls") < 100), way.dump());
    BOOST_TEST(way.at("call_p999_us").is_null() == (way.at("calls") < 1'000), way.dump());
    if (way.at("calls") >= 100) BOOST_TEST(way.at("call_us") <= way.at("call_p99_us"), way.dump());
  }
  BOOST_TEST((ways == std::vector<std::string>{"bench>stage1", "bench>stage2", "stage1>stage2", "stage2>stage1"}));

  program table({"bench", "--join", address, "--seconds", "0.05"});
  BOOST_TEST(table.how_it_ends() == "exited with 0", table.text());
  BOOST_TEST(table.line_with("2 nodes, 4 ways between them; this takes about 0:01") != "", table.text());
  BOOST_TEST(table.line_with("4 of 4: stage2 -> stage1") != "", table.text());
  BOOST_TEST(table.line_with("stage1  stage2  shared memory") != "", table.text());
}

BOOST_FIXTURE_TEST_CASE(nodes_run_programs_of_the_savina_suite_together, two_nodes) {
  program third({"node", "--load", "probe", "--name", "stage3", "--join", address});
  ready(third);
  program json({"bench", "--join", address, "--savina", "--seconds", "0.05", "--json"});
  BOOST_TEST(json.how_it_ends() == "exited with 0", json.text());
  const auto found = json_of(json);
  BOOST_TEST(found.at("ways").empty());
  std::vector<std::string> programs;
  for (const auto& each : found.at("programs")) {
    programs.push_back(each.at("program"));
    BOOST_TEST(each.at("calls").get<int>() > 0, each.dump());
    BOOST_TEST(each.at("calls_per_second").get<double>() > 0, each.dump());
  }
  BOOST_TEST((programs == std::vector<std::string>{"ping_pong", "thread_ring", "big", "chameneos"}));

  program table({"bench", "--join", address, "--savina", "--seconds", "0.05"});
  BOOST_TEST(table.how_it_ends() == "exited with 0", table.text());
  BOOST_TEST(table.line_with("chameneos on 3 nodes") != "", table.text());
  BOOST_TEST(table.line_with("thread_ring  ") != "", table.text());
}

BOOST_AUTO_TEST_CASE(one_node_alone_runs_no_program_of_the_savina_suite) {
  program node({"node", "--load", "probe", "--name", "alone"});
  program bench({"bench", "--join", ready(node).address(), "--savina", "--seconds", "0.05"});
  BOOST_TEST(bench.how_it_ends() == "exited with 1", bench.text());
  BOOST_TEST(bench.line_with("big: ") == "big: expected at least 2 nodes, got 1", bench.text());
}

BOOST_FIXTURE_TEST_CASE(the_nodes_of_a_cluster_file_are_measured, two_nodes) {
  const temporary_folder folder;
  const auto file = (folder.path() / "cluster.json").string();
  const auto write = [&](const std::string& second_name) {
    std::ofstream(file) << nlohmann::json{{"nodes",
                                           {{{"name", "stage1"}, {"port", troupe::parse_address(address).second}},
                                            {{"name", second_name}, {"port", of_second.port}}}}};
  };
  write("stage2");
  program bench({"bench", "--cluster", file, "--seconds", "0.05", "--json"});
  BOOST_TEST(bench.how_it_ends() == "exited with 0", bench.text());
  BOOST_TEST(json_of(bench).at("ways").size() == 4u);
  write("stage3");
  program wrong({"bench", "--cluster", file, "--seconds", "0.05"});
  BOOST_TEST(wrong.how_it_ends() == "exited with 1");
  BOOST_TEST(wrong.line_with("stage3: ") != "", wrong.text());
  BOOST_TEST(wrong.line_with("expected node stage3 at 127.0.0.1:") != "", wrong.text());
}

BOOST_FIXTURE_TEST_CASE(a_node_that_ends_meanwhile_is_told_and_the_rest_measured, two_nodes) {  // BM-1
  program third({"node", "--load", "probe", "--name", "stage3", "--join", address});
  ready(third);
  program bench({"bench", "--join", address, "--seconds", "0.3", "--json"});
  BOOST_TEST(bench.line_with("1 of 9: bench -> stage1") != "", bench.text());
  third.signal(SIGKILL);
  BOOST_TEST(bench.how_it_ends() == "exited with 1", bench.text());
  for (const auto& way : json_of(bench).at("ways")) {
    const bool with_third = way.at("from") == "stage3" || way.at("to") == "stage3";
    BOOST_TEST(way.contains("problem") == with_third, way.dump());
    if (with_third) BOOST_TEST(way.at("problem").get<std::string>().find("stage3") != std::string::npos, way.dump());
  }
}

BOOST_FIXTURE_TEST_CASE(a_node_of_the_cluster_that_is_unreachable_is_told, two_nodes) {  // BM-1
  second.signal(SIGSTOP);
  BOOST_TEST(first.line_with("peer 'stage2' is unreachable") != "", first.text());
  program bench({"bench", "--join", address, "--seconds", "0.05", "--json", "--name", "operator"});
  BOOST_TEST(bench.how_it_ends() == "exited with 1", bench.text());
  const auto found = json_of(bench);
  BOOST_TEST(found.at("nodes").dump().find("\"name\":\"stage2\",\"problem\":\"it is unreachable: ") != std::string::npos,
             found.dump());
  BOOST_TEST(found.at("ways").size() == 1u, found.dump());
  BOOST_TEST(found.at("ways").at(0).at("from") == "operator");
  second.signal(SIGCONT);
}

BOOST_FIXTURE_TEST_CASE(a_node_of_the_file_that_cannot_be_reached_is_told_and_the_rest_measured, two_nodes) {  // BM-1
  const temporary_folder folder;
  const auto file = (folder.path() / "cluster.json").string();
  std::ofstream(file) << nlohmann::json{
    {"nodes", {{{"name", "stage1"}, {"port", troupe::parse_address(address).second}}, {{"name", "away"}, {"port", 1}}}}};
  program bench({"bench", "--cluster", file, "--seconds", "0.05", "--json"});
  BOOST_TEST(bench.how_it_ends() == "exited with 1", bench.text());
  const auto found = json_of(bench);
  BOOST_TEST(found.at("ways").size() == 1u, found.dump());
  BOOST_TEST(found.at("nodes").at(0).at("name") == "away");
  BOOST_TEST(found.at("nodes").at(0).at("problem").get<std::string>().find("127.0.0.1:1") != std::string::npos, found.dump());
}

BOOST_FIXTURE_TEST_CASE(nodes_without_the_probe_are_told_with_what_helps, two_nodes) {  // BM-1, BM-2
  const auto help = "it has no module type 'probe'; start it with --load probe";
  program plain({"node", "--name", "plain"});
  const auto of_plain = ready(plain);
  program alone({"bench", "--join", of_plain.address(), "--seconds", "0.05"});
  BOOST_TEST(alone.how_it_ends() == "exited with 1", alone.text());
  BOOST_TEST(alone.line_with("plain was left out: ") == "plain was left out: " + std::string(help), alone.text());
  const temporary_folder folder;
  const auto file = (folder.path() / "cluster.json").string();
  std::ofstream(file) << nlohmann::json{
    {"nodes",
     {{{"name", "stage1"}, {"port", troupe::parse_address(address).second}}, {{"name", "plain"}, {"port", of_plain.port}}}}};
  program of_file({"bench", "--cluster", file, "--seconds", "0.05"});
  BOOST_TEST(of_file.how_it_ends() == "exited with 1", of_file.text());
  BOOST_TEST(of_file.line_with("plain: ") == "plain: " + std::string(help), of_file.text());
  BOOST_TEST(of_file.line_with("1 of 1: bench -> stage1") != "", of_file.text());
}

BOOST_FIXTURE_TEST_CASE(a_stop_prints_what_was_measured, two_nodes) {
  program bench({"bench", "--join", address, "--seconds", "20", "--json"});
  BOOST_TEST(bench.line_with("1 of 4: bench -> stage1") != "", bench.text());
  bench.signal(SIGINT);
  BOOST_TEST(bench.how_it_ends(std::chrono::seconds(4)) == "exited with 1", bench.text());
  const auto found = json_of(bench);
  BOOST_TEST(found.at("nodes").size() == 2u, found.dump());
  BOOST_TEST(found.at("ways").empty(), found.dump());
  BOOST_TEST(found.at("stopped") == true);
}

BOOST_AUTO_TEST_CASE(without_nodes_to_measure_the_command_says_which_options_name_them) {
  program none({"bench"});
  BOOST_TEST(none.how_it_ends() == "exited with 2");
  BOOST_TEST(none.line_with("--cluster FILE or --join HOST:PORT") != "", none.text());
  program nobody({"bench", "--join", "127.0.0.1:1"});
  BOOST_TEST(nobody.how_it_ends() == "exited with 1");
  BOOST_TEST(nobody.lines().size() == 1u, nobody.text());
}
