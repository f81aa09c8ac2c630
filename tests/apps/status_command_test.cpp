// SPDX-License-Identifier: BSD-3-Clause
#include <boost/test/unit_test.hpp>

#include <signal.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "apps/ready_line.hpp"
#include "support/loopback_socket.hpp"
#include "support/program.hpp"

using namespace troupe::apps;
using namespace troupe::apps::test;
using namespace std::chrono_literals;

namespace {

std::string address_printed_by(program& node) {
  auto ready = ready_line::parse(node.line_that([](auto& line) { return ready_line::parse(line).has_value(); }));
  BOOST_REQUIRE_MESSAGE(ready, "the node said: " << node.text());
  return ready->address();
}

void check_status_fails(const std::string& address, const std::string& words) {
  program status({"status", address, "--deadline-ms", "300"});
  BOOST_TEST(status.how_it_ends() == "exited with 1");
  BOOST_TEST(status.lines().size() == 1u, status.text());
  BOOST_TEST(status.text().starts_with("troupe: "), status.text());
  BOOST_TEST(status.text().find(words) != std::string::npos, "expected '" << words << "' in: " << status.text());
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_status_of_a_node_is_a_table_or_json) {  // SD-1
  program first({"node", "--name", "stage1"});
  const auto address = address_printed_by(first);
  program second({"node", "--name", "stage2", "--join", address});
  address_printed_by(second);

  program table({"status", address});
  BOOST_TEST(table.how_it_ends() == "exited with 0");
  BOOST_TEST(table.line_with("stage1 at " + address + ", up for ") != "", table.text());
  BOOST_TEST(table.line_with("contexts   0 open, 0 so far") != "", table.text());
  BOOST_TEST(table.line_with("stage2  127.0.0.1:") != "", table.text());

  program json({"status", address, "--json"});
  BOOST_TEST(json.how_it_ends() == "exited with 0");
  const auto status = nlohmann::json::parse(json.text());
  BOOST_TEST(status.at("name") == "stage1");
  BOOST_TEST(status.at("contexts").at("open") == 0);
  BOOST_TEST(status.at("peers").size() == 1u);  // the asking process is no peer
  BOOST_TEST(status.at("peers").at(0).at("name") == "stage2");
  BOOST_TEST(status.at("peers").at(0).at("up") == true);
  BOOST_TEST(status.at("peers").at(0).at("bytes_sent_before_compression") == status.at("peers").at(0).at("bytes_sent"));
  BOOST_TEST(status.at("peers").at(0).contains("bytes_received_before_compression"));

  program watch({"status", address, "--json", "--watch", "0.01"});
  BOOST_TEST(watch.line_that([seen = 0](const std::string&) mutable { return ++seen == 3; }) != "");
  watch.signal(SIGINT);
  BOOST_TEST(watch.how_it_ends() == "exited with 0");
}

BOOST_AUTO_TEST_CASE(the_devices_and_device_maps_of_a_node_are_shown) {
  program first({"node", "--name", "stage1", "--device-map", "stage2:cpu=cuda:3", "--device-map=nobody:cpu=cpu"});
  const auto address = address_printed_by(first);
  const auto problem_of = [&](std::size_t map) {
    program json({"status", address, "--json"});
    BOOST_TEST(json.how_it_ends() == "exited with 0");
    const auto status = nlohmann::json::parse(json.text());
    BOOST_TEST(status.at("devices") == nlohmann::json({"cpu"}));
    BOOST_TEST(status.at("device_maps").size() == 2u);
    BOOST_TEST(status.at("device_maps").at(0).at("peer") == "nobody");
    BOOST_TEST(status.at("device_maps").at(1).at("map") == "cpu=cuda:3");
    return status.at("device_maps").at(map).at("problem").get<std::string>();
  };
  BOOST_TEST(problem_of(1) == "no node 'stage2' is connected to this node");
  program second({"node", "--name", "stage2", "--join", address});
  address_printed_by(second);
  BOOST_TEST(problem_of(0) == "no node 'nobody' is connected to this node");
  const std::string problem =
    "the device map to node 'stage2' (cpu=cuda:3) leads to device cuda:3, and node 'stage2' has only cpu";
  BOOST_TEST(problem_of(1) == problem);
  program table({"status", address});
  BOOST_TEST(table.how_it_ends() == "exited with 0");
  BOOST_TEST(table.line_with("devices    cpu") != "", table.text());
  BOOST_TEST(table.line_with("device map to stage2: cpu=cuda:3; " + problem) != "", table.text());
  BOOST_TEST(first.line_with(problem) != "", first.text());  // its log
}

BOOST_AUTO_TEST_CASE(the_whole_cluster_is_shown_with_those_that_are_not_up) {  // CV-1, CV-2, SD-3
  const auto start = [](const std::string& name, const std::string& join) {
    std::vector<std::string> arguments{"node", "--name", name, "--heartbeat-ms", "100"};
    if (!join.empty()) arguments.insert(arguments.end(), {"--join", join, "--no-shared-memory"});
    return arguments;
  };
  program first(start("stage1", ""));
  const auto address = address_printed_by(first);
  program second(start("stage2", address));
  address_printed_by(second);
  program third(start("stage3", address));
  address_printed_by(third);
  const auto cluster = [&] {
    program json({"status", address, "--cluster", "--json"});
    BOOST_TEST(json.how_it_ends() == "exited with 0");
    return nlohmann::json::parse(json.text()).at("nodes");
  };
  const auto state_of = [&](const nlohmann::json& nodes, const std::string& name) {
    std::string states;
    for (const auto& each : nodes)
      if (each.at("name") == name) states += each.at("state").get<std::string>() + " ";
    return states;
  };
  auto nodes = cluster();
  BOOST_TEST(nodes.size() == 3u);
  for (const auto& each : nodes) {
    BOOST_TEST(each.at("state") == "up");
    BOOST_TEST(each.at("memory_bytes") > 1'000'000);
    BOOST_TEST(each.contains("rates"));
  }
  BOOST_TEST(nodes[1].at("transport") == "TCP");

  third.signal(SIGSTOP);
  second.signal(SIGKILL);
  BOOST_TEST(second.how_it_ends() == "killed by signal 9 (Killed)");
  while (state_of(nodes = cluster(), "stage3") != "unreachable " || state_of(nodes, "stage2") == "up ") {
  }
  program again(start("stage2", address));
  address_printed_by(again);
  while (state_of(nodes = cluster(), "stage2") != "up ") {
  }
  BOOST_TEST(state_of(nodes, "stage3") == "unreachable ");
  program of_node({"status", address, "--json"});
  BOOST_TEST(of_node.how_it_ends() == "exited with 0");
  BOOST_TEST(nlohmann::json::parse(of_node.text()).at("peers").size() == 2u, of_node.text());
  BOOST_TEST(nodes.back().at("problem").get<std::string>().starts_with("no sign of life"));
  program table({"status", address, "--cluster"});
  BOOST_TEST(table.how_it_ends() == "exited with 0");
  BOOST_TEST(table.line_with("cluster as stage1 sees it: 2 up, 1 unreachable, 0 gone") != "", table.text());
  BOOST_TEST(table.line_with("stage3: no sign of life") != "", table.text());
}

BOOST_AUTO_TEST_CASE(a_frozen_node_that_still_counts_as_up_is_listed_by_the_deadline) {  // SH-1, CV-2
  program first({"node", "--name", "stage1", "--heartbeat-ms", "3600000"});
  const auto address = address_printed_by(first);
  program second({"node", "--name", "stage2", "--join", address, "--heartbeat-ms", "3600000"});
  address_printed_by(second);
  second.signal(SIGSTOP);
  program table({"status", address, "--cluster", "--deadline-ms", "500"});
  BOOST_TEST(table.how_it_ends(5s) == "exited with 0");
  BOOST_TEST(table.line_with("stage2: node 'stage2' did not answer within 0.") != "", table.text());
}

BOOST_AUTO_TEST_CASE(a_watch_shows_rates_and_takes_the_place_of_what_it_showed_in_a_terminal) {
  program first({"node", "--name", "stage1"});
  const auto address = address_printed_by(first);
  program appended({"status", address, "--watch", "0.05"});
  BOOST_TEST(appended.line_with("rates      0 calls/s") != "");
  BOOST_TEST(appended.text().find("\033") == std::string::npos);
  appended.signal(SIGINT);
  BOOST_TEST(appended.how_it_ends() == "exited with 0");
  program in_place({"-qec", "'" + program_under_test() + "' status " + address + " --cluster --watch 0.05", "/dev/null"},
                   "script");
  const auto clears = [seen = 0](const std::string& line) mutable {
    return line.find("\033[H\033[2Jcluster") != line.npos && ++seen == 3;
  };
  BOOST_TEST(in_place.line_that(clears) != "", in_place.text());
  program two_seconds({"status", address, "--watch", "--json"});
  BOOST_TEST(two_seconds.line_with("\"name\":\"stage1\"") != "", two_seconds.text());
  two_seconds.signal(SIGINT);
  BOOST_TEST(two_seconds.how_it_ends() == "exited with 0");
}

BOOST_AUTO_TEST_CASE(a_watch_goes_on_when_its_node_is_restarted) {  // SD-4
  for (const bool json : {false, true}) {
    const auto port = loopback_socket().port();  // free again
    const std::vector<std::string> start{"node", "--name", "stage1", "--port", port};
    auto node = std::make_unique<program>(start);
    const auto address = address_printed_by(*node);
    std::vector<std::string> command{"status", address, "--watch", "0.05", "--deadline-ms", "2000"};
    if (json) command.emplace_back("--json");
    program watch(command);
    const std::string answer = json ? "\"name\":\"stage1\"" : "stage1 at " + address;
    BOOST_TEST(watch.line_with(answer) != "", watch.text());
    node->signal(SIGTERM);
    BOOST_TEST(node->how_it_ends() == "exited with 0");
    BOOST_TEST(watch.line_with(json ? "{\"problem\":\"no node listens at " : "no node listens at " + address) != "",
               watch.text());
    const auto before = watch.lines().size();
    node = std::make_unique<program>(start);
    address_printed_by(*node);
    BOOST_TEST(watch.line_that([&, seen = std::size_t{0}](const std::string& line) mutable {
      return ++seen > before && line.find(answer) != std::string::npos;
    }) != "",
               watch.text());
    watch.signal(SIGINT);
    BOOST_TEST(watch.how_it_ends() == "exited with 0");
  }
}

BOOST_AUTO_TEST_CASE(an_address_without_a_node_is_named_in_one_line) {  // SD-2
  loopback_socket mute;
  check_status_fails("127.0.0.1:" + mute.port(), "no answer from 127.0.0.1:" + mute.port() + " within 0.3 s");
  std::string port;
  {
    loopback_socket gone;
    port = gone.port();
  }
  check_status_fails("127.0.0.1:" + port, "no node listens at 127.0.0.1:" + port);
  check_status_fails("no such host:4001", "the host name 'no such host' has no address");
  program frozen({"node", "--name", "stage1"});
  const auto address = address_printed_by(frozen);
  frozen.signal(SIGSTOP);
  check_status_fails(address, "no answer from " + address);
  program nothing({"status"});
  BOOST_TEST(nothing.how_it_ends() == "exited with 2");
}
