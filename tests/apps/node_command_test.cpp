// SPDX-License-Identifier: BSD-3-Clause
#include <boost/test/unit_test.hpp>

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "apps/ready_line.hpp"
#include "support/limits_of_programs.hpp"
#include "support/loopback_socket.hpp"
#include "support/metrics_rules.hpp"
#include "support/program.hpp"
#include "support/temporary_folder.hpp"

using namespace troupe::apps;
using namespace troupe::apps::test;
using namespace std::chrono_literals;

namespace {

constexpr auto time_to_leave = 2s;

/// The address that a node prints when it is ready.
std::string address_of(program& node) {
  auto ready = ready_line::parse(node.line_that([](auto& line) { return ready_line::parse(line).has_value(); }));
  BOOST_REQUIRE_MESSAGE(ready, "the node said: " << node.text());
  return ready->address();
}

void check_fails(std::vector<std::string> arguments, const std::string& status, std::vector<std::string> words) {
  arguments.insert(arguments.begin(), {"node", "--log-level", "error"});
  program node(arguments);
  BOOST_TEST(node.how_it_ends() == "exited with " + status);
  BOOST_TEST(node.lines().size() == 1u, "expected one line, got:\n" << node.text());
  BOOST_TEST(node.text().starts_with("troupe: "), node.text());
  for (auto& word : words)
    BOOST_TEST(node.text().find(word) != std::string::npos, "expected '" << word << "' in: " << node.text());
}

/// The processes that the main thread of a process has started, by the numbers of this process's namespace.
std::vector<pid_t> children_of(pid_t parent) {
  const auto number = std::to_string(parent);
  std::ifstream in("/proc/" + number + "/task/" + number + "/children");
  return {std::istream_iterator<pid_t>(in), {}};
}

pid_t child_named(pid_t parent, const std::string& name) {
  for (const auto each : children_of(parent))
    if (content_of("/proc/" + std::to_string(each) + "/comm") == name + "\n") return each;
  return 0;
}

boost::test_tools::assertion_result makes_containers(boost::unit_test::test_unit_id) {
  program made({"--pid", "--fork", "true"}, "unshare");
  boost::test_tools::assertion_result result(made.how_it_ends() == "exited with 0");
  if (!result) std::printf("SKIPPED: %s\n", made.text().c_str());
  return result;
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_first_process_of_a_container_leaves_no_zombie,
                     *boost::unit_test::precondition(makes_containers)) {  // FP-1, FP-2
  const temporary_folder folder;
  const auto file = folder.write("cluster.json", R"({"nodes": [{"name": "a"}]})");
  const std::vector<std::vector<std::string>> commands{{"node", "--name", "a"}, {"launch", file}};
  for (const auto& command : commands) {
    std::vector<std::string> arguments{"--pid", "--fork", "--kill-child", program_under_test()};
    arguments.insert(arguments.end(), command.begin(), command.end());
    program container(arguments, "unshare");
    BOOST_TEST_REQUIRE(
      !container.line_that([](auto& line) { return line.find("a listens on") == 0 || line.find("Ctrl-C") != line.npos; })
         .empty(),
      container.text());
    const auto first = children_of(container.pid()).at(0);
    program visitor({"--target", std::to_string(first), "--pid", "sh", "-c", "sleep 1000 & :"}, "nsenter");
    BOOST_TEST(visitor.how_it_ends() == "exited with 0", visitor.text());
    const auto until = std::chrono::steady_clock::now() + 20s;
    const auto goes_on = [&] { return std::chrono::steady_clock::now() < until && container.how_it_ends(5ms) == "still runs"; };
    auto orphan = child_named(first, "sleep");
    while (orphan == 0 && goes_on()) orphan = child_named(first, "sleep");  // it may still be a copy of the shell
    BOOST_TEST_REQUIRE(orphan > 0);
    kill(orphan, SIGKILL);
    const auto is_there = [&] { return std::filesystem::exists("/proc/" + std::to_string(orphan)); };
    while (is_there() && goes_on()) {
    }
    BOOST_TEST(!is_there());
    kill(first, SIGTERM);
    BOOST_TEST(container.how_it_ends(time_to_leave) == "exited with 0", container.text());
  }
  program killed({"--pid", "--fork", "--kill-child", program_under_test(), "node", "--name", "a"}, "unshare");
  BOOST_TEST_REQUIRE(!killed.line_with("a listens on").empty(), killed.text());
  kill(child_named(children_of(killed.pid()).at(0), "troupe"), SIGKILL);
  BOOST_TEST(killed.how_it_ends(time_to_leave) == "exited with 137", killed.text());
}

BOOST_AUTO_TEST_CASE(a_node_prints_its_address_and_leaves_at_a_signal_in_time) {  // NC-1, NC-2
  for (int number : {SIGTERM, SIGINT}) {
    program node({"node", "--name", "stage1", "--log-level", "warn"});
    BOOST_TEST(address_of(node).starts_with("127.0.0.1:"));
    node.signal(number);
    BOOST_TEST(node.how_it_ends(time_to_leave) == "exited with 0");
    BOOST_TEST(node.lines().size() == 1u, node.text());
  }
}

BOOST_AUTO_TEST_CASE(a_node_may_open_as_many_descriptors_as_the_system_allows) {
  rlimit before{};
  BOOST_REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  auto few = before;
  few.rlim_cur = 256;
  BOOST_REQUIRE(::setrlimit(RLIMIT_NOFILE, &few) == 0);
  program node({"node", "--name", "stage1", "--log-level", "warn"});
  BOOST_REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
  address_of(node);
  rlimit now{};
  BOOST_REQUIRE(::prlimit(node.pid(), RLIMIT_NOFILE, nullptr, &now) == 0);
  BOOST_TEST(now.rlim_cur == before.rlim_max);
}

BOOST_AUTO_TEST_CASE(a_node_can_print_its_port_alone) {
  program node({"node", "--name", "stage1", "--print-port", "--log-level", "warn"});
  auto line = node.line_with("");
  BOOST_TEST((!line.empty() && std::all_of(line.begin(), line.end(), [](char c) { return c >= '0' && c <= '9'; })), line);
}

BOOST_AUTO_TEST_CASE(a_node_joins_another_and_stays_when_that_one_leaves) {
  program first({"node", "--name", "stage1"});
  program second({"node", "--name", "stage2", "--join", address_of(first)});
  address_of(second);
  first.signal(SIGTERM);
  BOOST_TEST(first.how_it_ends(time_to_leave) == "exited with 0");
  BOOST_TEST(second.how_it_ends(0ms) == "still runs");
  second.signal(SIGTERM);
  BOOST_TEST(second.how_it_ends(time_to_leave) == "exited with 0");
}

BOOST_AUTO_TEST_CASE(a_node_leaves_when_the_peer_it_stays_for_says_farewell_or_is_killed) {  // NC-2
  for (int number : {SIGTERM, SIGKILL}) {
    program driver({"node", "--name", "driver"});
    program stage({"node", "--name", "stage1", "--join", address_of(driver), "--until-left", "driver"});
    address_of(stage);
    driver.signal(number);
    BOOST_TEST(stage.how_it_ends(time_to_leave) == "exited with 0");
  }
}

BOOST_AUTO_TEST_CASE(a_node_leaves_when_the_peer_it_stays_for_freezes) {  // NC-2
  program driver({"node", "--name", "driver", "--heartbeat-ms", "100"});
  program stage({"node", "--name", "stage1", "--join", address_of(driver), "--until-left", "driver", "--heartbeat-ms", "100",
                 "--forget-after", "1"});
  address_of(stage);
  driver.signal(SIGSTOP);
  BOOST_TEST(stage.how_it_ends(time_to_leave) == "exited with 0");
}

BOOST_AUTO_TEST_CASE(a_port_in_use_is_named) {
  loopback_socket taken;
  check_fails({"--name", "a", "--port", taken.port()}, "1", {"127.0.0.1", taken.port(), "in use"});
}

BOOST_AUTO_TEST_CASE(a_host_that_is_not_this_machine_is_named) {
  program node({"node", "--name", "a", "--host", "192.0.2.1", "--insecure"});
  BOOST_TEST(node.how_it_ends() == "exited with 1");
  BOOST_TEST(node.text().find("192.0.2.1") != std::string::npos, node.text());
}

BOOST_AUTO_TEST_CASE(a_host_name_without_an_address_is_named_and_nobody_is_warned) {
  program node({"node", "--name", "a", "--host", "no such host", "--insecure"});
  BOOST_TEST(node.how_it_ends() == "exited with 1");
  const auto text = node.text();
  BOOST_TEST(text.find("the host name 'no such host' has no address (") != std::string::npos, text);
  BOOST_TEST(text.find("port 0") == std::string::npos, text);
  BOOST_TEST(text.find("not loopback") == std::string::npos, text);
}

BOOST_AUTO_TEST_CASE(a_name_that_is_taken_is_refused) {
  program first({"node", "--name", "stage1"});
  check_fails({"--name", "stage1", "--join", address_of(first)}, "1", {"stage1", "name"});
  BOOST_TEST(first.how_it_ends(0ms) == "still runs");
}

BOOST_AUTO_TEST_CASE(an_address_where_nobody_listens_is_named) {
  std::string port;
  {
    loopback_socket gone;
    port = gone.port();
  }
  check_fails({"--name", "a", "--join-wait", "1", "--join", "127.0.0.1:" + port}, "1", {"127.0.0.1:" + port});
  check_fails({"--name", "a", "--join-wait", "1", "--join", "no such host:4001"}, "1", {"'no such host' has no address"});
}

BOOST_AUTO_TEST_CASE(an_address_where_nobody_answers_is_named_at_the_deadline) {
  loopback_socket mute;
  check_fails({"--name", "a", "--join-wait", "1", "--join", "127.0.0.1:" + mute.port()}, "1", {"127.0.0.1:" + mute.port()});
}

BOOST_AUTO_TEST_CASE(a_node_that_still_joins_leaves_at_a_signal_in_time) {  // NC-2
  loopback_socket mute;
  program node({"node", "--name", "a", "--join", "127.0.0.1:" + mute.port()});
  BOOST_REQUIRE(mute.is_called());
  node.signal(SIGTERM);
  BOOST_TEST(node.how_it_ends(time_to_leave) == "exited with 0");
}

BOOST_AUTO_TEST_CASE(wrong_options_are_named_before_anything_starts) {
  check_fails({}, "2", {"--name is required", "troupe node --help"});
  check_fails({"--name", "../x"}, "2", {"--name", "letters", "../x"});
  check_fails({"--name", "a", "--port", "65536"}, "2", {"--port", "65536"});
  check_fails({"--name", "a", "--threads", "0"}, "2", {"--threads", "0"});
  check_fails({"--name", "a", "--join", "nowhere"}, "2", {"--join", "nowhere"});
  check_fails({"--name", "a", "--advertise", "0.0.0.0"}, "2", {"--advertise", "0.0.0.0", "by which others reach this node"});
  check_fails({"--name", "a", "--advertise", "h1:4001"}, "2", {"--advertise", "h1:4001", "without a port"});
  check_fails({"--name", "a", "--metrics", "65536"}, "2", {"--metrics", "65536"});
  check_fails({"--name", "a", "--device-map", "cpu=cpu"}, "2",
              {"--device-map", "'cpu=cpu'", "stage1:cuda:0=cuda:1,cpu=cuda:0"});
  check_fails({"--name", "a", "--device-map", "b:cpu=gpu"}, "2", {"--device-map", "'gpu'", "cuda:0"});
}

BOOST_AUTO_TEST_CASE(a_device_that_the_node_does_not_have_is_named) {
  ::setenv("CUDA_VISIBLE_DEVICES", "-1", 1);  // for the processes of this test, if the host has a GPU
  check_fails({"--name", "a", "--cuda"}, "1", {"--cuda: expected a GPU"});
  check_fails({"--name", "a", "--device-map", "b:cuda:7=cpu"}, "1",
              {"the device map to node 'b' (cuda:7=cpu)", "device cuda:7", "this node has only cpu"});
  check_fails({"--name", "a", "--device-map", "b:cpu=cpu", "--device-map", "b:cuda:0=cpu"}, "1",
              {"node 'b' has two device maps", "'b:cuda:0=cpu'"});
}

BOOST_AUTO_TEST_CASE(a_node_logs_to_stderr_what_happens_to_it) {
  program first({"node", "--name", "stage1"});
  const auto address = address_of(first);
  BOOST_TEST(!first.line_with(" info  node=stage1 room=nodes listens at " + address).empty());
  program second({"node", "--name", "stage2", "--join", address, "--no-shared-memory", "--log-level", "warn"});
  const auto other = address_of(second);
  BOOST_TEST(!first.line_with("room=membership peer 'stage2' is up: " + other + ", TCP").empty());
  second.signal(SIGKILL);
  BOOST_TEST(!first.line_with("room=membership peer 'stage2' is unreachable: " + other + ", connection lost").empty());
  BOOST_TEST(!first.line_with("room=membership peer 'stage2' is gone: " + other + ", its process has ended").empty());
  first.signal(SIGTERM);
  BOOST_TEST(first.how_it_ends(time_to_leave) == "exited with 0");
  BOOST_TEST(!first.line_with("room=nodes stopped").empty());
  BOOST_TEST(second.lines().size() == 1u, second.text());
}

BOOST_AUTO_TEST_CASE(a_node_appends_its_log_to_a_file) {
  temporary_folder folder;
  const auto file = folder.write("log", "what was there\n");
  program node({"node", "--name", "stage1", "--log-file", file});
  const auto address = address_of(node);
  node.signal(SIGTERM);
  BOOST_TEST(node.how_it_ends(time_to_leave) == "exited with 0");
  BOOST_TEST(node.lines().size() == 1u, node.text());
  const auto text = content_of(file);
  BOOST_TEST(text.starts_with("what was there\n"), text);
  BOOST_TEST(text.find(" info  node=stage1 room=nodes listens at " + address + "\n") != std::string::npos, text);
}

BOOST_AUTO_TEST_CASE(a_node_that_is_hung_up_on_goes_on_in_a_new_log) {  // NC-4, LR-1
  temporary_folder folder;
  const auto file = folder.path() / "log";
  program node({"node", "--name", "stage1", "--log-file", file});
  const auto address = address_of(node);
  const auto wait_for = [&](const std::string& text) {
    while (content_of(file).find(text) == std::string::npos)
      BOOST_TEST_REQUIRE(node.how_it_ends(5ms) == "still runs", node.text());
  };
  wait_for("listens at ");
  std::filesystem::rename(file, folder.path() / "log.1");
  node.signal(SIGHUP);
  wait_for("opened the log file again");
  std::filesystem::rename(file, folder.path() / "log.2");
  std::filesystem::create_directory(file);  // no file can be opened there
  node.signal(SIGHUP);
  program asking({"status", address});
  BOOST_TEST(asking.how_it_ends() == "exited with 0", asking.text());
  node.signal(SIGTERM);
  BOOST_TEST(node.how_it_ends(time_to_leave) == "exited with 0");
  const auto rest = content_of(folder.path() / "log.2");
  for (const auto& text : {file.string() + "' can't be written: Is a directory; ",
                           std::string("; the log goes on in the old file\n"), std::string("room=nodes stopped\n")})
    BOOST_TEST(rest.find(text) != std::string::npos, rest);
}

BOOST_AUTO_TEST_CASE(a_log_that_cannot_be_is_named) {
  temporary_folder folder;
  const std::string file = folder.path() / "missing" / "log";
  check_fails({"--name", "a", "--log-file", file}, "1", {"the log file '" + file + "' can't be written: No such file"});
  check_fails({"--name", "a", "--log-file", folder.path()}, "1", {folder.path(), "Is a directory"});
}

BOOST_AUTO_TEST_CASE(a_node_tells_by_http_whether_it_serves_and_what_it_does) {  // NP-1
  const auto port_of = [](program& node) {
    const std::string before = "serves /healthz and /metrics at 127.0.0.1:";
    const auto line = node.line_with(before);
    BOOST_REQUIRE_MESSAGE(!line.empty(), node.text());
    return line.substr(line.find(before) + before.size());
  };
  const auto ask = [](const std::string& port, const std::string& path) {
    program client({"-c",
                    "import sys, urllib.request, urllib.error\n"
                    "try: answer = urllib.request.urlopen(sys.argv[1], timeout=20)\n"
                    "except urllib.error.HTTPError as problem: answer = problem\n"
                    "print(answer.status, answer.headers['Content-Type'])\n"
                    "print(answer.read().decode(), end='')",
                    "http://127.0.0.1:" + port + path},
                   "python3");
    BOOST_TEST(client.how_it_ends() == "exited with 0", client.text());
    return client.text();
  };
  loopback_socket mute;
  program joining({"node", "--name", "a", "--metrics", "0", "--join", "127.0.0.1:" + mute.port()});
  BOOST_TEST(ask(port_of(joining), "/healthz") ==
             "503 text/plain; charset=utf-8\nnode 'a' starts: it has not joined the nodes that it was told to join\n");
  program node({"node", "--name", "stage1", "--metrics", "0"});
  const auto port = port_of(node);
  address_of(node);
  BOOST_TEST(ask(port, "/healthz") == "200 text/plain; charset=utf-8\nnode 'stage1' serves\n");
  const auto metrics = ask(port, "/metrics");
  BOOST_TEST(metrics.starts_with("200 text/plain; version=0.0.4; charset=utf-8\n# HELP troupe_build_info"), metrics);
  for (const auto& problem : troupe::test::problems_of_metrics(metrics.substr(metrics.find('\n') + 1))) BOOST_ERROR(problem);
  check_fails({"--name", "b", "--metrics", port}, "1", {"127.0.0.1:" + port, "--metrics"});
}

BOOST_AUTO_TEST_CASE(a_node_ends_when_its_stdin_ends) {
  program node({"node", "--name", "a", "--until-silent", "60"});  // a program under test has an empty stdin
  BOOST_TEST(node.how_it_ends() == "exited with 0");
  BOOST_TEST(!node.line_with("a listens on ").empty(), node.text());
}

BOOST_AUTO_TEST_CASE(a_folder_of_data_is_made_or_refused_at_the_start) {  // DA-3
  temporary_folder folder;
  const std::string data = folder.path() / "new" / "data";
  program node({"node", "--name", "a", "--data-dir", data});
  address_of(node);
  BOOST_TEST(std::filesystem::is_directory(data));
  check_fails({"--name", "a", "--data-dir", "/proc/self"}, "1", {"'/proc/self'", "can't be written to", "--data-dir"});
}

BOOST_AUTO_TEST_CASE(a_level_that_is_none_is_refused_with_those_that_are) {
  program node({"node", "--name", "a", "--log-level", "loud"});
  BOOST_TEST(node.how_it_ends() == "exited with 2");
  for (const auto* word : {"--log-level", "loud", "debug", "info", "warn", "error", "off"})
    BOOST_TEST(node.text().find(word) != std::string::npos, node.text());
}

BOOST_AUTO_TEST_CASE(a_log_of_json_has_an_object_in_each_line) {
  temporary_folder folder;
  const auto file = folder.path() / "log";
  {
    program node({"node", "--name", "a", "--log-level", "info", "--log-format", "json", "--log-file", file});
    address_of(node);
    node.signal(SIGTERM);
    BOOST_TEST(node.how_it_ends() == "exited with 0");
  }
  std::ifstream lines(file);
  std::vector<std::string> texts;
  for (std::string line; std::getline(lines, line);) texts.push_back(nlohmann::json::parse(line).at("text"));
  BOOST_TEST_REQUIRE(!texts.empty());
  BOOST_TEST(texts.front().starts_with("listens at "), texts.front());
}

BOOST_AUTO_TEST_CASE(a_node_that_others_can_reach_says_so) {  // NC-3
  check_fails({"--name", "a", "--host", "0.0.0.0"}, "1",
              {"host 0.0.0.0", "troupe certs node a", "--certificates a.pem", "--insecure"});
  program node({"node", "--name", "a", "--host", "0.0.0.0", "--insecure"});
  address_of(node);
  const auto warning = node.line_with("warn  node=a room=nodes ");
  BOOST_TEST(warning.find("--insecure: nobody has to prove who they are") != std::string::npos, warning);
  node.signal(SIGTERM);
  BOOST_TEST(node.how_it_ends(time_to_leave) == "exited with 0");
}

BOOST_AUTO_TEST_CASE(a_node_that_gets_no_more_threads_leaves_in_order, *boost::unit_test::precondition(is_root)) {
  program node(as_own_user({program_under_test(), "node", "--name", "limited", "--insecure", "--log-level", "error"}),
               "/usr/bin/setpriv");
  const auto address = address_of(node);
  program guest({"node", "--name", "guest", "--join", address, "--insecure", "--log-level", "info"});
  address_of(guest);
  take_threads_from(node.pid());
  node.signal(SIGTERM);
  BOOST_TEST(node.how_it_ends(time_to_leave) == "exited with 0");
  BOOST_TEST(node.lines().size() == 1u, node.text());
  BOOST_TEST(!guest.line_with("its node stopped").empty(), guest.text());  // the farewell
}

BOOST_AUTO_TEST_CASE(a_program_that_gets_no_thread_names_the_limit, *boost::unit_test::precondition(is_root)) {
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"node", "--name", "limited"}, {"status", "127.0.0.1:1"}, {"bench", "--join", "127.0.0.1:1"}}) {
    auto all = as_own_user({"prlimit", "--nproc=1:1", program_under_test()});
    all.insert(all.end(), command.begin(), command.end());
    program limited(all, "/usr/bin/setpriv");
    BOOST_TEST(limited.how_it_ends() == "exited with 1");
    BOOST_TEST(limited.lines().size() == 1u, limited.text());
    BOOST_TEST(!limited.line_with("this user may have 1 processes and threads (RLIMIT_NPROC, ulimit -u)").empty(),
               limited.text());
  }
}

BOOST_AUTO_TEST_CASE(a_node_whose_control_group_is_full_names_it_and_leaves_in_order,
                     *boost::unit_test::precondition(makes_control_groups)) {
  const control_group group;
  program node(group.in_group({program_under_test(), "node", "--name", "limited", "--log-level", "error"}), "sh");
  const auto address = address_of(node);
  program guest({"node", "--name", "guest", "--join", address, "--log-level", "info"});
  address_of(guest);
  group.limit("1");
  program late(group.in_group({program_under_test(), "node", "--name", "late"}), "sh");
  BOOST_TEST(late.how_it_ends() == "exited with 1");
  BOOST_TEST(late.lines().size() == 1u, late.text());
  BOOST_TEST(late.text().find("this control group 1 (pids.max)") != std::string::npos, late.text());
  node.signal(SIGTERM);
  BOOST_TEST(node.how_it_ends(time_to_leave) == "exited with 0");
  BOOST_TEST(node.lines().size() == 1u, node.text());
  BOOST_TEST(!guest.line_with("its node stopped").empty(), guest.text());  // the farewell
}

// A container has a control group of its own as the root of the unified hierarchy.
BOOST_AUTO_TEST_CASE(the_control_group_of_a_container_is_named, *boost::unit_test::precondition(is_root)) {
  auto limited = as_own_user({"prlimit", "--nproc=1:1", program_under_test(), "node", "--name", "limited"});
  limited.insert(limited.begin(),
                 {"-m", "sh", "-c", "mount -t tmpfs none /sys/fs/cgroup && echo 77 > /sys/fs/cgroup/pids.max && exec \"$@\"",
                  "sh", "/usr/bin/setpriv"});
  program node(limited, "unshare");
  BOOST_TEST(node.how_it_ends() == "exited with 1");
  BOOST_TEST(!node.line_with("(RLIMIT_NPROC, ulimit -u), this control group 77 (pids.max)").empty(), node.text());
}

BOOST_AUTO_TEST_CASE(a_port_that_the_system_chose_is_free_for_a_successor) {
  program first({"node", "--name", "first", "--log-level", "warn"});
  const auto address = address_of(first);
  program guest({"node", "--name", "guest", "--join", address, "--log-level", "error"});
  address_of(guest);
  first.signal(SIGKILL);
  BOOST_TEST(first.how_it_ends().starts_with("killed"));
  program successor({"node", "--name", "first", "--port", address.substr(address.rfind(':') + 1), "--log-level", "warn"});
  BOOST_TEST(address_of(successor) == address);
}
