// SPDX-License-Identifier: BSD-3-Clause
#include <boost/test/unit_test.hpp>

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "support/limits_of_programs.hpp"
#include "support/loopback_socket.hpp"
#include "support/program.hpp"
#include "support/temporary_folder.hpp"

using namespace troupe::apps::test;
using namespace std::chrono_literals;

namespace {

constexpr auto time_to_leave = 2s;

struct fixture {
  temporary_folder folder;
  std::string file = folder.path() / "cluster.json";

  fixture() { write(R"({"nodes": [{"name": "stage1"}, {"name": "stage2", "workers": 2}, {"name": "stage3", "threads": 2}]})"); }

  void write(const std::string& text) { std::ofstream(file) << text; }

  /// The process of a node, read from the table.
  pid_t pid_of(program& launch, const std::string& node) {
    BOOST_REQUIRE_MESSAGE(!launch.line_with("Ctrl-C stops").empty(), launch.text());
    for (auto& line : launch.lines()) {
      std::istringstream row(line);
      std::string name;
      std::string address;
      pid_t pid = 0;
      if (row >> name >> address >> pid && name == node) return pid;
    }
    BOOST_FAIL("no node " + node + " in the table: " + launch.text());
    return 0;
  }
};

/// Waits until `parent` has started a process. Returns the number of that process.
pid_t first_child_of(program& parent) {
  while (parent.how_it_ends(1ms) == "still runs")
    for (auto& thread : std::filesystem::directory_iterator("/proc/" + std::to_string(parent.pid()) + "/task")) {
      pid_t child = 0;
      if (std::ifstream(thread.path() / "children") >> child) return child;
    }
  BOOST_FAIL("it started nobody: " + parent.text());
  return 0;
}

}  // namespace

BOOST_FIXTURE_TEST_CASE(the_table_shows_every_node_once_all_are_up, fixture) {  // LN-1
  program launch({"launch", file});
  for (auto* node : {"stage1", "stage2", "stage3"}) BOOST_TEST(kill(pid_of(launch, node), 0) == 0);
  auto text = launch.text();
  BOOST_TEST(text.find("node    address") == 0u, text);
  BOOST_TEST(text.find("3 nodes are up; Ctrl-C stops them\n") != std::string::npos, text);
}

BOOST_FIXTURE_TEST_CASE(nodes_have_charlm_unless_other_libraries_are_named, fixture) {
  const auto loads = [&](const std::vector<std::string>& arguments, const std::string& name) {
    program launch(arguments);
    const auto command = content_of("/proc/" + std::to_string(pid_of(launch, "stage2")) + "/cmdline");
    return command.find(std::string("--load") + '\0' + name + '\0') != std::string::npos;
  };
  BOOST_TEST(loads({"launch", file}, "charlm"));
  BOOST_TEST(loads({"launch", file, "--load", "probe"}, "probe"));
  BOOST_TEST(!loads({"launch", file, "--load", "probe"}, "charlm"));
}

BOOST_FIXTURE_TEST_CASE(a_signal_ends_every_node_in_time, fixture) {  // LN-3
  for (int number : {SIGINT, SIGTERM, SIGHUP}) {
    program launch({"launch", file});
    std::vector<pid_t> pids{pid_of(launch, "stage1"), pid_of(launch, "stage2"), pid_of(launch, "stage3")};
    launch.signal(number);
    BOOST_TEST(launch.how_it_ends(time_to_leave) == "exited with 0");
    for (auto pid : pids) BOOST_TEST(is_gone(pid));
  }
}

BOOST_FIXTURE_TEST_CASE(a_node_that_is_killed_is_named_and_the_others_end, fixture) {  // LN-2
  program launch({"launch", file});
  auto first = pid_of(launch, "stage1");
  auto second = pid_of(launch, "stage2");
  kill(second, SIGKILL);
  BOOST_TEST(launch.how_it_ends(time_to_leave) == "exited with 1");
  auto line = "troupe: node stage2 (pid " + std::to_string(second) + ") killed by signal 9 (Killed); the others were stopped";
  BOOST_TEST(launch.lines().back() == line);
  BOOST_TEST(is_gone(first));
}

BOOST_FIXTURE_TEST_CASE(no_node_outlives_a_launch_that_is_killed, fixture) {
  program launch({"launch", file});
  std::vector<pid_t> pids{pid_of(launch, "stage1"), pid_of(launch, "stage2"), pid_of(launch, "stage3")};
  launch.signal(SIGKILL);
  BOOST_TEST(launch.how_it_ends() == "killed by signal 9 (Killed)");
  for (auto pid : pids) BOOST_TEST(is_gone(pid));
}

BOOST_FIXTURE_TEST_CASE(keys_are_gone_with_a_launch_however_it_ends, fixture) {  // LN-5
  write(R"({"nodes": [{"name": "stage1", "host": "0.0.0.0"}]})");                // others reach it, so it gets certificates
  const auto temporary = folder.path() / "tmp";
  std::filesystem::create_directory(temporary);
  for (int number : {SIGKILL, SIGHUP}) {
    program launch({"-c", "TMPDIR=\"$1\" exec \"$0\" launch \"$2\"", program_under_test(), temporary, file}, "sh");
    const auto line = launch.line_with("a driver on this host: --certificates ");
    BOOST_TEST_REQUIRE(!line.empty(), launch.text());
    const auto kit = line.substr(line.rfind(' ') + 1);
    BOOST_TEST_REQUIRE(!launch.line_with("Ctrl-C stops").empty(), launch.text());
    const auto row = launch.line_with("stage1  ");
    const auto port = row.substr(row.find(':') + 1);
    program asking({"status", "127.0.0.1:" + port.substr(0, port.find(' ')), "--certificates", kit});
    BOOST_TEST(asking.how_it_ends() == "exited with 0", asking.text());
    launch.signal(number);
    launch.how_it_ends();
    BOOST_TEST(!std::filesystem::exists(kit));
    BOOST_TEST(std::filesystem::is_empty(temporary));
  }
}

BOOST_FIXTURE_TEST_CASE(a_frozen_node_ends_with_the_others, fixture) {  // LN-3
  program launch({"launch", file});
  auto frozen = pid_of(launch, "stage3");
  kill(frozen, SIGSTOP);
  launch.signal(SIGINT);
  BOOST_TEST(launch.how_it_ends(time_to_leave) == "exited with 0");
  BOOST_TEST(is_gone(frozen));
}

BOOST_FIXTURE_TEST_CASE(a_port_in_use_is_reported_with_the_node, fixture) {  // LN-2
  loopback_socket taken;
  write(R"({"nodes": [{"name": "stage1"}, {"name": "stage2", "port": )" + taken.port() + "}]}");
  program launch({"launch", file});
  BOOST_TEST(launch.how_it_ends() == "exited with 1");
  BOOST_TEST(launch.line_with("[stage2] troupe: ").find(taken.port()) != std::string::npos, launch.text());
  BOOST_TEST(launch.lines().back().starts_with("troupe: node stage2 (pid "), launch.text());
}

BOOST_FIXTURE_TEST_CASE(a_node_that_is_not_up_in_time_is_named, fixture) {  // LN-2
  program launch({"launch", file, "--deadline-ms", "1"});
  BOOST_TEST(launch.how_it_ends() == "exited with 1");
  BOOST_TEST(launch.lines().back() ==
             "troupe: expected every node to be up by the deadline, but stage1 is not; set a longer one with --deadline-ms");
}

BOOST_FIXTURE_TEST_CASE(a_signal_while_nodes_start_ends_them, fixture) {  // LN-3
  program launch({"launch", file});
  auto first = first_child_of(launch);
  launch.signal(SIGINT);
  BOOST_TEST(launch.how_it_ends(time_to_leave) == "exited with 0");
  BOOST_TEST(is_gone(first));
}

BOOST_FIXTURE_TEST_CASE(a_launch_that_gets_no_more_threads_ends_in_order, fixture,
                        *boost::unit_test::precondition(is_root)) {  // LN-3
  std::filesystem::permissions(folder.path(), std::filesystem::perms::others_exec, std::filesystem::perm_options::add);
  program launch(as_own_user({program_under_test(), "launch", file, "--insecure", "--log-level", "error"}), "/usr/bin/setpriv");
  const std::vector<pid_t> nodes{pid_of(launch, "stage1"), pid_of(launch, "stage2"), pid_of(launch, "stage3")};
  std::string name;
  std::string address;
  std::istringstream(launch.line_with("stage1  ")) >> name >> address;
  program guest({"node", "--name", "guest", "--join", address, "--insecure", "--log-level", "info"});
  BOOST_TEST_REQUIRE(guest.has_lines_with(" is up: ", 3), guest.text());
  const auto before = launch.lines().size();
  take_threads_from(launch.pid());
  for (const auto node : nodes) take_threads_from(node);
  launch.signal(SIGTERM);
  BOOST_TEST(launch.how_it_ends(time_to_leave) == "exited with 0");
  for (const auto node : nodes) BOOST_TEST(is_gone(node));
  BOOST_TEST(launch.lines().size() == before, launch.text());
  BOOST_TEST(guest.has_lines_with("its node stopped", 3), guest.text());  // the farewells
}

BOOST_FIXTURE_TEST_CASE(a_launch_that_gets_too_few_threads_names_the_limit, fixture,
                        *boost::unit_test::precondition(is_root)) {  // LN-2
  std::filesystem::permissions(folder.path(), std::filesystem::perms::others_exec, std::filesystem::perm_options::add);
  write(R"({"nodes": [{"name": "stage1"}, {"name": "stage2"}]})");
  // The command itself, the process of the first node, threads of that node, and the second node are refused in turn.
  for (const auto* most : {"1", "3", "4", "8", "18"}) {
    const std::string limit = most;
    program launch(as_own_user({"prlimit", "--nproc=" + limit + ":" + limit, program_under_test(), "launch", file}),
                   "/usr/bin/setpriv");
    BOOST_TEST(launch.how_it_ends() == "exited with 1");
    const auto text = "this user may have " + limit + " processes and threads (RLIMIT_NPROC, ulimit -u)";
    const auto lines = launch.lines();
    BOOST_TEST(std::count_if(lines.begin(), lines.end(), [&](auto& line) { return line.find(text) != line.npos; }) == 1,
               launch.text());
    BOOST_TEST(lines.back().starts_with("troupe: "), launch.text());
    BOOST_TEST(lines.size() <= 2u, launch.text());  // that of a node, and which node it was
  }
}

BOOST_FIXTURE_TEST_CASE(a_launch_whose_control_group_is_full_names_it, fixture,
                        *boost::unit_test::precondition(makes_control_groups)) {  // LN-2
  const control_group group;
  group.limit("1");
  program launch(group.in_group({program_under_test(), "launch", file}), "sh");
  BOOST_TEST(launch.how_it_ends() == "exited with 1");
  BOOST_TEST(launch.lines().size() == 1u, launch.text());
  BOOST_TEST(!launch.line_with("this control group 1 (pids.max)").empty(), launch.text());
}

BOOST_FIXTURE_TEST_CASE(slurm_starts_the_nodes_on_the_hosts_of_the_allocation, fixture) {  // LN-1, LN-3
  const auto write_program = [&](const std::string& name, const std::string& text) {
    std::filesystem::permissions(folder.write(name, "#!/bin/sh\n" + text), std::filesystem::perms::owner_all);
  };
  // What scontrol writes to stderr is no host, and neither is a blank line.
  write_program("scontrol",
                "printf 'ld.so: a warning\\n\\n' >&2\n"
                "[ \"$*\" = 'show hostnames n[1-2]' ] && printf '127.0.0.1\\n\\n127.0.0.2\\n'\n");
  // As srun does: reads its options, starts the program elsewhere, and passes stdin on. The host greets with a line of the form that
  // nodes print.
  write_program("srun",
                "for each; do case $each in --nodelist=*) echo srun $*;; --*) ;; *) break;; esac; shift; done\n"
                "for each; do echo $each listens on 127.0.0.9:1; done\nexec \"$@\"\n");
  write(R"({"nodes": [{"name": "stage1"}, {"name": "stage2"}, {"name": "stage3"}]})");
  const auto launched = [&](const std::string& allocation) {
    return std::vector<std::string>{
      "-c", "export PATH=\"$1:$PATH\" SLURM_JOB_NODELIST='" + allocation + "'; exec \"$0\" launch \"$2\" --slurm",
      program_under_test(), folder.path(), file};
  };
  program launch(launched("n[1-2]"), "sh");
  BOOST_TEST(!launch.line_with("3 nodes are up").empty(), launch.text());
  BOOST_TEST(!launch.line_with("[scontrol] ld.so: a warning").empty(), launch.text());
  BOOST_TEST(!launch.line_with("[stage2] stage2 listens on 127.0.0.9:1").empty(), launch.text());
  BOOST_TEST(!launch.line_with("[stage2] srun --nodelist=127.0.0.2 ").empty(), launch.text());
  BOOST_TEST(!launch.line_with("stage2  127.0.0.2:").empty(), launch.text());
  BOOST_TEST(!launch.line_with("stage3  127.0.0.1:").empty(), launch.text());
  const auto pid = pid_of(launch, "stage2");
  launch.signal(SIGTERM);
  BOOST_TEST(launch.how_it_ends(time_to_leave) == "exited with 0");
  BOOST_TEST(is_gone(pid));
  program outside(launched(""), "sh");
  BOOST_TEST(outside.how_it_ends() == "exited with 1");
  BOOST_TEST(outside.text().starts_with("troupe: --slurm: expected to run within an allocation"), outside.text());
  program unknown(launched("m[1-2]"), "sh");
  BOOST_TEST(unknown.how_it_ends() == "exited with 1");
  BOOST_TEST(unknown.text().starts_with("troupe: --slurm: 'scontrol show hostnames m[1-2]' exited with 1: ld.so: a warning"),
             unknown.text());
}

BOOST_FIXTURE_TEST_CASE(a_wrong_cluster_file_is_one_line, fixture) {
  write(R"({"nodes": [{"name": "stage1", "prot": 1}]})");
  program launch({"launch", file});
  BOOST_TEST(launch.how_it_ends() == "exited with 1");
  BOOST_TEST(launch.lines().size() == 1u);
  BOOST_TEST(launch.text().starts_with("troupe: " + file +
                                       ": nodes[0]: unknown field \"prot\"; expected one of name, host, advertise, port, "),
             launch.text());
  program missing({"launch", file + "x"});
  BOOST_TEST(missing.how_it_ends() == "exited with 1");
  BOOST_TEST(missing.text().starts_with("troupe: " + file + "x: no such file"), missing.text());
}
