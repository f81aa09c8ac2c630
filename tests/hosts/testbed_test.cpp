// SPDX-License-Identifier: BSD-3-Clause
// What the testbed promises the other tests.
#include "hosts/testbed.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include "support/contains.hpp"

namespace {

using namespace std::chrono_literals;
using troupe::hosts::address_of;
using troupe::hosts::makes_hosts;
using troupe::hosts::makes_slow_links;
using troupe::hosts::program;
using troupe::hosts::testbed;
using troupe::test::contains;

/// Whether a program on this host gets an answer from the node.
bool reaches(const testbed& all, const std::string& from, const std::string& node) {
  auto asking = all[from].troupe({"status", node, "--deadline-ms", "500"});
  return asking.how_it_ends() == "exited with 0";
}

std::size_t namespaces_of(pid_t process) {
  program list({"netns", "list"}, "ip");
  BOOST_TEST(list.how_it_ends() == "exited with 0");
  const auto lines = list.lines();
  const auto prefix = "troupe-test-" + std::to_string(process) + "-";
  return static_cast<std::size_t>(
    std::count_if(lines.begin(), lines.end(), [&](const auto& line) { return line.starts_with(prefix); }));
}

std::string in_brackets(const std::string& host, int port) { return "[" + host + "]:" + std::to_string(port); }

}  // namespace

BOOST_AUTO_TEST_SUITE(hosts, *boost::unit_test::precondition(makes_hosts))

BOOST_AUTO_TEST_CASE(hosts_have_addresses_names_ports_and_folders_of_their_own) {
  const testbed all({"h1", "h2"});
  auto a = all["h1"].troupe({"node", "--name", "a", "--host", "0.0.0.0", "--port", "4001"});
  auto b = all["h2"].troupe({"node", "--name", "b", "--host", "::", "--port", "4001", "--log-file", "log"});
  address_of(a);
  address_of(b);
  for (const auto& address : {all["h1"].ipv4() + ":4001", std::string("h1:4001"), std::string("h1-both:4001")})
    BOOST_TEST(all["h2"].status(address)["name"] == "a");
  for (const auto& address : {in_brackets(all["h2"].ipv6(), 4001), std::string("h2-v6:4001"), std::string("h2:4001")})
    BOOST_TEST(all["h1"].status(address)["name"] == "b");
  BOOST_TEST(all["h2"].status("127.0.0.1:4001")["name"] == "b");
  BOOST_TEST(std::filesystem::exists(all["h2"].folder() / "log"));
  BOOST_TEST(!std::filesystem::exists(all["h1"].folder() / "log"));
}

BOOST_AUTO_TEST_CASE(signals_reach_the_program_on_a_host) {
  const testbed all({"h1"});
  auto a = all["h1"].troupe({"node", "--name", "a"});
  const auto address = address_of(a);
  BOOST_TEST(reaches(all, "h1", address));
  a.signal(SIGSTOP);
  BOOST_TEST(!reaches(all, "h1", address));
  a.signal(SIGCONT);
  BOOST_TEST(reaches(all, "h1", address));
  a.signal(SIGKILL);
  BOOST_TEST(contains(a.how_it_ends(), "killed by signal 9"));
}

BOOST_AUTO_TEST_CASE(hosts_are_unplugged_and_cut_from_each_other_and_come_back) {
  testbed all({"h1", "h2", "h3"});
  auto a = all["h1"].troupe({"node", "--name", "a", "--host", "0.0.0.0", "--port", "4001"});
  address_of(a);
  all.cut("h1", "h2");
  BOOST_TEST(!reaches(all, "h2", "h1:4001"));
  BOOST_TEST(reaches(all, "h3", "h1:4001"));
  all.mend("h1", "h2");
  BOOST_TEST(reaches(all, "h2", "h1:4001"));
  all.unplug("h1");
  BOOST_TEST(!reaches(all, "h2", "h1:4001"));
  BOOST_TEST(!reaches(all, "h3", "h1:4001"));
  all.plug("h1");
  BOOST_TEST(reaches(all, "h3", "h1:4001"));
}

BOOST_AUTO_TEST_CASE(a_second_network_has_addresses_of_its_own) {
  testbed all({"h1", "h2", "h3"});
  const auto other = all.add_network({"h1", "h3"});
  auto a = all["h1"].troupe({"node", "--name", "a", "--host", "0.0.0.0", "--port", "4001"});
  address_of(a);
  BOOST_TEST(reaches(all, "h3", all["h1"].ipv4(other) + ":4001"));
  BOOST_TEST(reaches(all, "h3", in_brackets(all["h1"].ipv6(0), 4001)) == false);  // `a` listens by IPv4 alone
  BOOST_TEST(!reaches(all, "h2", all["h1"].ipv4(other) + ":4001"));
}

BOOST_AUTO_TEST_CASE(nothing_is_left_of_a_testbed_nor_of_one_whose_process_was_killed) {
  BOOST_TEST(namespaces_of(getpid()) == 0u);
  const pid_t child = fork();
  if (child == 0) {
    testbed all({"h1", "h2"});
    kill(getpid(), SIGKILL);
  }
  waitpid(child, nullptr, 0);
  BOOST_TEST(namespaces_of(child) == 3u);
  {
    testbed all({"h1", "h2"});
    BOOST_TEST(namespaces_of(getpid()) == 3u);
    BOOST_TEST(namespaces_of(child) == 0u);
    testbed others({"h1"});
    BOOST_TEST(namespaces_of(getpid()) == 5u);
  }
  BOOST_TEST(namespaces_of(getpid()) == 0u);
}

BOOST_AUTO_TEST_CASE(a_command_that_fails_is_shown_with_what_it_said) {
  testbed all({"h1"});
  BOOST_CHECK_EXCEPTION(all.limit_rate("h1", "fast"), std::runtime_error,
                        [](const auto& problem) { return contains(problem.what(), "rate fast"); });
  BOOST_CHECK_THROW(all["h9"], std::out_of_range);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(slow_links, *boost::unit_test::label("slow_links") * boost::unit_test::precondition(makes_slow_links))

BOOST_AUTO_TEST_CASE(a_link_has_the_rate_that_a_test_asks_for) {
  constexpr int megabytes = 3;
  constexpr std::string_view serve =
    "import socket, sys\n"
    "door = socket.create_server(('0.0.0.0', 4001))\n"
    "print('listens', flush=True)\n"
    "line, _ = door.accept()\n"
    "while line.recv(1 << 16): pass\n";
  testbed all({"h1", "h2"});
  all.limit_rate("h1", "20mbit");
  auto taking = all["h2"].start("/usr/bin/python3", {"-c", std::string(serve)});
  BOOST_REQUIRE(!taking.line_with("listens").empty());
  const auto begin = std::chrono::steady_clock::now();
  auto giving = all["h1"].start(
    "/usr/bin/python3",
    {"-c", "import socket; socket.create_connection(('h2', 4001)).sendall(bytes(" + std::to_string(megabytes) + "000000))"});
  BOOST_TEST(giving.how_it_ends() == "exited with 0", giving.text());
  BOOST_TEST(taking.how_it_ends() == "exited with 0", taking.text());
  // 24 Mbit less 4 Mbit, the burst, at 20 Mbit/s take a second.
  BOOST_TEST((std::chrono::steady_clock::now() - begin >= 900ms));
}

BOOST_AUTO_TEST_SUITE_END()
