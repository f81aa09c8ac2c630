// SPDX-License-Identifier: BSD-3-Clause
// `troupe launch` starts nodes on other hosts by ssh, and ends them whatever happens to it. The hosts have a real sshd.
#include <signal.h>
#include <sys/stat.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include "actors/loopback_nodes.hpp"
#include "hosts/testbed.hpp"
#include "support/contains.hpp"

namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using troupe::apps::test::program_under_test;
using troupe::hosts::address_of;
using troupe::hosts::host;
using troupe::hosts::program;
using troupe::hosts::testbed;
using troupe::test::becomes_true;
using troupe::test::contains;

constexpr const char* sshd = "/usr/sbin/sshd";

boost::test_tools::assertion_result has_sshd(boost::unit_test::test_unit_id id) {
  auto result = troupe::hosts::makes_hosts(id);
  if (result && !fs::exists(sshd)) {
    std::printf("SKIPPED: there is no %s; install openssh-server\n", sshd);
    result = false;
  }
  return result;
}

/// h1 launches nodes on h2 and h3, which have sshd, keys of their own and one user: root.
struct three_hosts {
  three_hosts() {
    for (auto* each : {&on_h2, &on_h3})
      BOOST_TEST_REQUIRE(!each->line_with("Server listening on 0.0.0.0").empty(), each->text());
    for (const auto* name : {"h2", "h3"}) fs::create_directory(all[name].folder() / "my work");
  }

  void make_keys() {
    fs::create_directory("/run/sshd");  // sshd asks for this folder
    const auto keys = all["h1"].folder();
    for (const std::string name : {"host_key", "user_key"}) {
      auto made = all["h1"].start("ssh-keygen", {"-q", "-t", "ed25519", "-N", "", "-f", (keys / name).string()});
      BOOST_TEST_REQUIRE(made.how_it_ends() == "exited with 0", made.text());
    }
    std::ofstream(keys / "sshd_config")
      << "HostKey " << (keys / "host_key").string() << "\nAuthorizedKeysFile " << (keys / "user_key.pub").string()
      << "\nStrictModes no\nUsePAM no\nPidFile none\nPermitRootLogin yes\nPasswordAuthentication no\n";
    std::ofstream(keys / "ssh_config")
      << "IdentityFile " << (keys / "user_key").string()
      << "\nIdentitiesOnly yes\nUserKnownHostsFile /dev/null\nStrictHostKeyChecking no\nLogLevel ERROR\n";
  }

  program start_sshd(const std::string& on) {
    if (!fs::exists(all["h1"].folder() / "sshd_config")) make_keys();
    return all[on].start(sshd, {"-D", "-e", "-f", (all["h1"].folder() / "sshd_config").string()});
  }

  nlohmann::json node(const std::string& name, const std::string& on) {
    return {{"name", name},
            {"ssh", "root@" + on},
            {"port", 4001},
            {"program", program_under_test()},
            {"folder", (all[on].folder() / "my work").string()}};
  }

  program launch(const nlohmann::json& nodes) {
    std::ofstream(all["h1"].folder() / "cluster.json") << nlohmann::json{{"nodes", nodes}};
    return all["h1"].troupe({"launch", "cluster.json", "--ssh", "ssh -F ssh_config"});
  }

  /// Keeps the driver's kit, which exists as long as the command runs. To be called when the nodes are up.
  void keep_kit(program& launch) {
    constexpr auto mark = "--certificates ";
    const auto line = launch.line_with(mark);
    BOOST_TEST_REQUIRE(!line.empty(), launch.text());
    made_kit = line.substr(line.find(mark) + std::string(mark).size());
    kit = all["h1"].folder() / "kept.pem";
    fs::copy_file(made_kit, kit, fs::copy_options::overwrite_existing);
  }

  std::string status(const std::string& on) {
    auto asking = all[on].troupe({"status", "127.0.0.1:4001", "--json", "--certificates", kit.string()});
    asking.how_it_ends();
    return asking.text();
  }

  /// Also without a kit: a node that has one does not answer, but it listens.
  bool serves(const std::string& on) {
    auto asking = all[on].troupe({"status", "127.0.0.1:4001", "--insecure"});
    asking.how_it_ends();
    return !contains(asking.text(), "no node listens");
  }
  bool ends(const std::string& on, std::chrono::seconds patience) {
    return becomes_true([&] { return !serves(on); }, patience);
  }

  testbed all{{"h1", "h2", "h3"}};
  fs::path made_kit;
  fs::path kit;
  program on_h2 = start_sshd("h2");
  program on_h3 = start_sshd("h3");
};

}  // namespace

BOOST_AUTO_TEST_SUITE(hosts, *boost::unit_test::precondition(has_sshd))

BOOST_FIXTURE_TEST_SUITE(launching, three_hosts)

BOOST_AUTO_TEST_CASE(nodes_start_on_other_hosts_meet_and_end_with_the_command) {  // LN-1, LN-3
  auto launch = this->launch({node("stage1", "h2"), node("stage2", "h3")});
  BOOST_TEST_REQUIRE(!launch.line_with("2 nodes are up; Ctrl-C stops them").empty(), launch.text());
  keep_kit(launch);
  BOOST_TEST(!launch.line_with("stage1  h2:4001 ").empty(), launch.text());
  const auto status = nlohmann::json::parse(this->status("h3"));
  BOOST_TEST(status["name"] == "stage2");
  BOOST_TEST(status["peers"][0]["name"] == "stage1");
  BOOST_TEST(status["peers"][0]["address"] == all["h2"].ipv4() + ":4001");
  launch.signal(SIGINT);
  BOOST_TEST(launch.how_it_ends(2s) == "exited with 0");
  BOOST_TEST(!fs::exists(made_kit));
  BOOST_TEST(!serves("h2"));
  BOOST_TEST(!serves("h3"));
}

BOOST_AUTO_TEST_CASE(nodes_end_when_the_command_is_killed) {  // LN-4
  auto launch = this->launch({node("stage1", "h2"), node("stage2", "h3")});
  BOOST_TEST_REQUIRE(!launch.line_with("nodes are up").empty(), launch.text());
  launch.signal(SIGKILL);
  BOOST_TEST(ends("h2", 10s));
  BOOST_TEST(ends("h3", 10s));
}

BOOST_AUTO_TEST_CASE(a_node_ends_when_its_host_is_cut_off_from_the_command_and_so_do_the_others) {  // LN-2, LN-4, NR-3
  auto launch = this->launch({node("stage1", "h2"), node("stage2", "h3")});
  BOOST_TEST_REQUIRE(!launch.line_with("nodes are up").empty(), launch.text());
  all.cut("h1", "h2");
  BOOST_TEST(ends("h2", 25s));
  BOOST_TEST(launch.how_it_ends(25s) == "exited with 1");
  BOOST_TEST(contains(launch.lines().back(), "troupe: node stage1 "), launch.text());
  BOOST_TEST(ends("h3", 5s));
}

BOOST_AUTO_TEST_CASE(a_program_that_is_not_there_and_a_host_that_does_not_answer_are_named) {  // LN-2
  auto missing = node("stage1", "h2");
  missing["program"] = "/no/such/troupe";
  auto launch = this->launch(nlohmann::json::array({missing}));
  BOOST_TEST(launch.how_it_ends() == "exited with 1");
  BOOST_TEST(!launch.line_with("[stage1] env: ").empty(), launch.text());
  BOOST_TEST(contains(launch.lines().back(), "troupe: node stage1 "), launch.text());
  auto nowhere = this->launch({node("stage1", "h3"), {{"name", "stage2"}, {"ssh", "h1"}, {"port", 4001}}});  // h1 has no sshd
  BOOST_TEST(nowhere.how_it_ends() == "exited with 1");
  BOOST_TEST(!nowhere.line_with("[stage2] ssh: connect to host h1 port 22: Connection refused").empty(), nowhere.text());
  BOOST_TEST(!serves("h3"));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE_END()
