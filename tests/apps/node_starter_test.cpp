// SPDX-License-Identifier: BSD-3-Clause
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "apps/node_starter.hpp"
#include "apps/process_group.hpp"
#include "apps/ready_line.hpp"
#include "support/contains.hpp"

using namespace troupe::apps;
using troupe::test::contains;

namespace {

using words = std::vector<std::string>;

node_starter starter_of(const std::string& text, start_options options = {}) {
  return {cluster_file::parse(text, "f.json"), std::move(options), "f.json"};
}

std::string why_refused(const std::string& text, start_options options = {}) {
  try {
    starter_of(text, std::move(options));
  } catch (const std::runtime_error& problem) {
    return problem.what();
  }
  return "";
}

bool has(const words& all, const words& part) {
  return std::search(all.begin(), all.end(), part.begin(), part.end()) != all.end();
}

start_options of_slurm() {
  start_options result;
  result.slurm_hosts = {"n1", "n2"};
  return result;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(starter_of_nodes)

BOOST_AUTO_TEST_CASE(a_node_of_this_host_is_the_running_program) {
  start_options options;
  options.of_node = {"--cuda"};
  const auto all =
    starter_of(R"({"nodes": [{"name": "a"}, {"name": "b", "folder": "/my work", "options": ["--trace"]}]})", options);
  const words expected{own_program(),    "node", "--name",      "a",    "--host",    "127.0.0.1", "--port", "0",
                       "--workers",      "1",    "--log-level", "warn", "--threads", "1",         "--cuda", "--ready-token",
                       all.ready_token()};
  BOOST_TEST(all.command(all.nodes()[0], "") == expected, boost::test_tools::per_element());
  BOOST_TEST(!all.is_remote(all.nodes()[0]));
  const auto second = all.command(all.nodes()[1], "127.0.0.1:4001");
  BOOST_TEST(has(second, {"env", "-C", "/my work", own_program()}));
  BOOST_TEST(has(second, {"--trace", "--join", "127.0.0.1:4001"}));
  BOOST_TEST(!has(second, {"--until-silent"}));
}

BOOST_AUTO_TEST_CASE(a_node_whose_options_name_no_library_has_those_of_the_command) {
  start_options options;
  options.load = {"charlm", "probe"};
  const auto all = starter_of(R"({"nodes": [{"name": "a"}, {"name": "b", "options": ["--trace", "--load", "libmine.so"]},)"
                              R"( {"name": "c", "options": ["--load=libmine.so"]}]})",
                              options);
  BOOST_TEST(has(all.command(all.nodes()[0], ""), {"--load", "charlm", "--load", "probe"}));
  for (const auto i : {1, 2}) BOOST_TEST(!has(all.command(all.nodes()[static_cast<std::size_t>(i)], ""), {"charlm"}));
}

BOOST_AUTO_TEST_CASE(workers_of_passes_become_an_option) {
  const auto all = starter_of(R"({"nodes": [{"name": "a", "pass_workers": 3}, {"name": "b"}]})", start_options());
  BOOST_TEST(has(all.command(all.nodes()[0], ""), {"--pass-workers", "3"}));
  BOOST_TEST(!has(all.command(all.nodes()[1], ""), {"--pass-workers"}));  // a program of an older version does not know it
}

BOOST_AUTO_TEST_CASE(fields_that_are_as_usual_become_no_options) {
  const auto all = starter_of(R"({"nodes": [{"name": "a", "send_limit": 512, "shared_memory": false, "deadline_ms": 60000}]})");
  const auto told = all.command(all.nodes()[0], "");
  BOOST_TEST(has(told, {"--send-limit", "512"}));
  BOOST_TEST(has(told, {"--no-shared-memory"}));
  BOOST_TEST(!has(told, {"--deadline-ms"}));
}

BOOST_AUTO_TEST_CASE(device_maps_become_options) {
  const auto all = starter_of(
    R"({"nodes": [{"name": "a", "device_maps": {"b": {"cuda:0": "cuda:1", "cpu": "cuda:0"}, "a": {"cpu": "cpu"}}}, {"name": "b"}]})",
    start_options());
  BOOST_TEST(
    has(all.command(all.nodes()[0], ""), {"--device-map", "a:cpu=cpu", "--device-map", "b:cpu=cuda:0, cuda:0=cuda:1"}));
  BOOST_TEST(!has(all.command(all.nodes()[1], ""), {"--device-map"}));
}

BOOST_AUTO_TEST_CASE(a_node_of_another_host_is_one_quoted_command_of_ssh) {  // NR-2
  start_options options;
  options.ssh = {"ssh", "-F", "my config"};
  const auto all = starter_of(
    R"({"nodes": [{"name": "a", "ssh": "me@h1", "port": 4001, "folder": "/it's; rm -rf $HOME", "options": ["--load", "a b"]}]})",
    options);
  const auto& node = all.nodes()[0];
  BOOST_TEST(all.is_remote(node));
  BOOST_TEST(all.reached_at(node) == "h1");
  const auto command = all.command(node, "");
  BOOST_TEST(has(command, {"ssh", "-F", "my config", "-o", "BatchMode=yes"}));
  BOOST_TEST(has(command, {"--", "me@h1"}));
  BOOST_TEST(command.back() ==
             "exec env -C '/it'\\''s; rm -rf $HOME' troupe node --name a --host 0.0.0.0 --port 4001 --workers 1 --log-level "
             "warn --threads 1 --load "
             "'a b' --ready-token " +
               all.ready_token() + " --until-silent 15");
}

BOOST_AUTO_TEST_CASE(a_program_may_have_blanks_in_its_path) {  // NR-2
  const auto all = starter_of(
    R"({"nodes": [{"name": "a", "ssh": "h1", "program": "/my programs/troupe"}, {"name": "b", "host": "0.0.0.0", "program": "/my programs/troupe"}]})");
  BOOST_TEST(contains(all.command(all.nodes()[0], "").back(), "exec '/my programs/troupe' node --name a "));
  BOOST_TEST(all.command(all.nodes()[1], "").front() == "/my programs/troupe");
}

BOOST_AUTO_TEST_CASE(only_a_line_with_the_token_of_the_starter_is_a_ready_line) {  // NR-4, RL-1
  const auto all = starter_of(R"({"nodes": [{"name": "a"}]})");
  const ready_line of_node{"a", "127.0.0.1", 4001};
  BOOST_TEST(ready_line::parse(of_node.text(all.ready_token()), all.ready_token()).has_value());
  BOOST_TEST(!ready_line::parse(of_node.text(), all.ready_token()).has_value());
  BOOST_TEST(!ready_line::parse(of_node.text(starter_of(R"({"nodes": [{"name": "a"}]})").ready_token()), all.ready_token()));
}

BOOST_AUTO_TEST_CASE(a_quoted_text_is_one_word_of_a_shell) {  // NR-2
  for (const std::string text : {"", "a", "a b", "it's", "$HOME `ls` \"x\" \\", "a\nb", "*"}) {
    std::string heard;
    {
      process_group shell([&](const std::string&, const std::string& line) { heard += line + "\n"; });
      shell.start("sh", {"sh", "-c", "printf '%s|\\n' " + shell_quoted(text)});
      shell.poll_for(std::chrono::seconds(20));
    }
    BOOST_TEST(heard == text + "|\n");
  }
}

BOOST_AUTO_TEST_CASE(slurm_gets_the_hosts_of_its_allocation_in_turn) {
  const auto all =
    starter_of(R"({"nodes": [{"name": "a", "port": 4001}, {"name": "b", "folder": "/w"}, {"name": "c"}]})", of_slurm());
  BOOST_TEST(
    has(all.command(all.nodes()[0], ""), {"srun", "--nodes=1", "--ntasks=1", "--overlap", "--unbuffered", "--nodelist=n1",
                                          own_program(), "node", "--name", "a", "--host", "0.0.0.0", "--port", "4001"}));
  BOOST_TEST(has(all.command(all.nodes()[1], "n1:4001"), {"--nodelist=n2", "env", "-C", "/w", own_program()}));
  BOOST_TEST(has(all.command(all.nodes()[1], "n1:4001"),
                 {"--join", "n1:4001", "--ready-token", all.ready_token(), "--until-silent", "15"}));
  BOOST_TEST(has(all.command(all.nodes()[2], ""), {"--nodelist=n1"}));
  BOOST_TEST(all.reached_at(all.nodes()[1]) == "n2");
}

BOOST_AUTO_TEST_CASE(nodes_that_could_not_reach_each_other_are_refused) {  // NR-1
  BOOST_TEST(why_refused(R"({"nodes": [{"name": "a"}, {"name": "b"}]})") == "");
  BOOST_TEST(contains(why_refused(R"({"nodes": [{"name": "a", "ssh": "h1"}, {"name": "b"}]})"),
                      "f.json: nodes[1].host: 127.0.0.1 is loopback"));
  BOOST_TEST(contains(why_refused(R"({"nodes": [{"name": "a", "host": "0.0.0.0"}, {"name": "b", "ssh": "h1"}]})"),
                      "f.json: nodes[0]: the other nodes join this one"));
  BOOST_TEST(why_refused(R"({"nodes": [{"name": "a", "host": "0.0.0.0", "advertise": "h0"}, {"name": "b", "ssh": "h1"}]})") ==
             "");
  BOOST_TEST(contains(why_refused(R"({"nodes": [{"name": "a", "ssh": "h1"}]})", of_slurm()), "nodes[0].ssh: expected none"));
}

BOOST_AUTO_TEST_CASE(a_node_at_an_address_of_another_host_needs_ssh) {  // NR-1
  const auto why = why_refused(R"({"nodes": [{"name": "a"}, {"name": "b", "host": "192.0.2.1", "port": 4001}]})");
  BOOST_TEST(contains(why, "f.json: nodes[1].host: 192.0.2.1 is no address of this host"), why);
  BOOST_TEST(contains(why, R"(write "ssh": "192.0.2.1")"), why);
  BOOST_TEST(why_refused(R"({"nodes": [{"name": "a", "host": "localhost"}, {"name": "b", "host": "::1"}]})") == "");
  BOOST_TEST(why_refused(R"({"nodes": [{"name": "a", "host": "127.0.0.7"}, {"name": "b", "host": "0.0.0.0"}]})") == "");
  BOOST_TEST(why_refused(R"({"nodes": [{"name": "a", "host": "192.0.2.1", "ssh": "h1"}]})") == "");
}

BOOST_AUTO_TEST_SUITE_END()
