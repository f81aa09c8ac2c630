// SPDX-License-Identifier: BSD-3-Clause
// What strangers, and nodes of the cluster that say what no node says, try from another host.
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "hosts/testbed.hpp"
#include "support/contains.hpp"

using namespace troupe::hosts;
using troupe::test::contains;

namespace {

namespace fs = std::filesystem;
using words = std::vector<std::string>;

std::string file_in(const char* variable) {
  const char* file = std::getenv(variable);
  if (file == nullptr) throw std::runtime_error(std::string("set ") + variable + "; ctest does");
  return file;
}

/// The most memory that a process has had at once, in KiB.
std::uint64_t peak_of(pid_t process) {
  std::ifstream in("/proc/" + std::to_string(process) + "/status");
  for (std::string word; in >> word;)
    if (std::uint64_t peak = 0; word == "VmHWM:" && in >> peak) return peak;
  throw std::runtime_error("no VmHWM of process " + std::to_string(process));
}

/// Node 'a' is on h1 and has a policy; its friend 'b' is on h2; the attacker 'mallory' is on h3.
struct siege {
  testbed all{{"h1", "h2", "h3"}};

  siege() {
    certs({"init", "--cluster", "mine"});
    kit("a", "h1");
    kit("b", "h2");
    kit("mallory", "h3", {"--role", "guest"});
    std::ofstream(all["h1"].folder() / "policy.json")
      << R"({"roles": {"member": {"call": ["*"], "status": true, "members": true}, "guest": {"call": ["name"]}}})";
  }

  void certs(words arguments) {
    arguments.insert(arguments.begin(), "certs");
    auto run = all["h1"].troupe(arguments);
    BOOST_REQUIRE_MESSAGE(run.how_it_ends() == "exited with 0", run.text());
  }

  void kit(const std::string& name, const std::string& on, const words& more = {}) {
    words arguments{"node", name};
    arguments.insert(arguments.end(), more.begin(), more.end());
    certs(arguments);
    const auto file = name + ".pem";
    if (on != "h1") fs::rename(all["h1"].folder() / file, all[on].folder() / file);
  }

  program node(const std::string& name, const std::string& on, const words& more = {}) {
    words arguments{"--name",         name,          "--host",      "0.0.0.0", "--port", "4001",
                    "--certificates", name + ".pem", "--log-level", "debug"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    arguments.push_back("--");
    if (name == "b") arguments.push_back("a");
    return all[on].start(file_in("TROUPE_CALLING_NODE"), arguments);
  }

  program defender() { return node("a", "h1", {"--policy", "policy.json"}); }
  program friend_of_a() { return node("b", "h2", {"--join", "h1:4001"}); }
  program attacker() {
    return all["h3"].start(file_in("TROUPE_ATTACKING_NODE"), {all["h1"].ipv4(), "4001", "a", "mallory.pem", "b"});
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(hosts, *boost::unit_test::precondition(makes_hosts))

BOOST_FIXTURE_TEST_SUITE(attacks, siege)

BOOST_AUTO_TEST_CASE(each_attack_is_refused_and_the_others_go_on) {
  auto a = defender();
  BOOST_REQUIRE(!a.line_with("listens at").empty());
  auto b = friend_of_a();
  BOOST_REQUIRE(!b.line_with("b called a").empty());
  const auto peak = peak_of(a.pid());
  auto attacks = attacker();
  BOOST_TEST(attacks.how_it_ends(std::chrono::seconds(100)) == "exited with 0", attacks.text());
  const words expected = {
    "32 bytes without a proof: closed",
    "32 bytes after the proof: closed",
    "a header of 4 GiB without a proof: closed",
    "a header of 4 GiB after the proof: closed",
    "2000 hostile inputs: played",
    "allowed call: done",
    "the policy does not let this role call the function 'secret'",
    "the policy does not let this role send TorchScript",
    "the policy does not let this role save",
    "the policy does not let this role read weights",
    "may not ask for the status of this node or of others: the policy does not let it",
    "forged heartbeat: ",
    "forged mark: ",
    "forged call: ",
  };
  for (const auto& each : expected) BOOST_TEST(contains(attacks.text(), each), each << " is not in\n" << attacks.text());
  for (const auto* each : {"forged heartbeat: ", "forged mark: ", "forged call: "})
    BOOST_TEST(contains(attacks.line_with(each), "from another node"), attacks.text());
  BOOST_TEST(!a.line_with("'secret' called by node 'mallory' of the role 'guest'").empty(), a.text());
  BOOST_TEST(!contains(a.text(), "peer 'b' is unreachable"), a.text());
  BOOST_TEST(!contains(a.text(), "peer 'b' is gone"), a.text());
  BOOST_TEST(peak_of(a.pid()) < peak + (64 << 10));  // KiB
  auto asking = all["h2"].troupe({"status", "h1:4001", "--certificates", "b.pem"});
  BOOST_TEST(asking.how_it_ends() == "exited with 0", asking.text());
}

// Who may save may not write, nor remove, outside of the folder for it.
BOOST_AUTO_TEST_CASE(no_path_leads_out_of_the_folder_of_a_node_that_lets_others_save) {
  const auto home = all["h1"].folder();
  std::ofstream(home / "policy.json") << R"({"roles": {"member": {"call": ["*"], "status": true, "members": true},
    "guest": {"call": ["name"], "save": true}}})";
  fs::create_directories(home / "data");
  fs::create_directories(home / "outside");
  fs::create_symlink(home / "outside", home / "data" / "link");
  const auto precious = home / "outside" / "a.0000000000000000.safetensors";
  std::ofstream(precious) << "precious";
  auto a = node("a", "h1", {"--policy", "policy.json", "--data-dir", "data"});
  BOOST_REQUIRE(!a.line_with("listens at").empty());
  auto b = friend_of_a();
  BOOST_REQUIRE(!b.line_with("b called a").empty());
  auto attacks = attacker();
  BOOST_TEST(attacks.how_it_ends(std::chrono::seconds(100)) == "exited with 0", attacks.text());
  for (const auto* folder : {"../outside", "/outside"})
    BOOST_TEST(contains(attacks.line_with("folder " + std::string(folder) + ": "), "the path '" + std::string(folder) + "'"),
               attacks.text());
  BOOST_TEST(contains(attacks.line_with("folder link: "), "links are not followed"), attacks.text());
  BOOST_TEST(fs::exists(precious));
  BOOST_TEST(!a.line_with("refused a request: 'troupe.optimizer.remove' called by node 'mallory' of the role 'guest'").empty(),
             a.text());
}

BOOST_AUTO_TEST_CASE(an_attacker_that_freezes_or_is_cut_off_disturbs_nobody) {
  auto a = defender();
  BOOST_REQUIRE(!a.line_with("listens at").empty());
  auto frozen = attacker();
  BOOST_REQUIRE(!frozen.line_with("a header of 4 GiB after the proof").empty());  // it plays its inputs now
  frozen.signal(SIGSTOP);
  auto b = friend_of_a();
  BOOST_REQUIRE(!b.line_with("b called a").empty());
  frozen.signal(SIGCONT);
  all.cut("h1", "h3");
  BOOST_TEST(frozen.how_it_ends(std::chrono::seconds(100)) == "exited with 1", frozen.text());
  auto asking = all["h2"].troupe({"status", "h1:4001", "--certificates", "b.pem"});
  BOOST_TEST(asking.how_it_ends() == "exited with 0", asking.text());
  all.mend("h1", "h3");
  auto again = attacker();
  BOOST_TEST(again.how_it_ends(std::chrono::seconds(100)) == "exited with 0", again.text());
  BOOST_TEST(contains(again.text(), "forged call: "), again.text());
  a.signal(SIGKILL);  // the node starts again with its kit, and its friend comes back
  BOOST_TEST(!b.line_with("peer 'a' is gone").empty(), b.text());
  a.how_it_ends();
  auto after = defender();
  BOOST_TEST(b.has_lines_with("peer 'a' is up", 2), b.text());
}

BOOST_AUTO_TEST_CASE(another_user_of_the_machine_gets_no_byte_of_a_node_on_loopback) {
  auto a = all["h1"].start(file_in("TROUPE_PROGRAM"), {"node", "--name", "a", "--port", "4001", "--log-level", "debug"});
  address_of(a);
  const std::string count_bytes = "exec 3<>/dev/tcp/127.0.0.1/4001 && head -c 1 <&3 | wc -c";
  const words as_nobody = {"--reuid", "65534", "--regid", "65534", "--clear-groups", "bash", "-c"};
  const auto bytes_got = [&](bool of_the_same_user) {
    words arguments = as_nobody;
    if (of_the_same_user) arguments = {"-c"};
    arguments.push_back(count_bytes);
    auto run = all["h1"].start(of_the_same_user ? "bash" : "setpriv", arguments);
    BOOST_TEST(run.how_it_ends() == "exited with 0", run.text());
    return run.text();
  };
  BOOST_TEST(bytes_got(false) == "0\n");
  BOOST_TEST(bytes_got(true) == "1\n");
  BOOST_TEST(!a.line_with("refused a connection").empty(), a.text());
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE_END()
