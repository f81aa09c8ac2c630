// SPDX-License-Identifier: BSD-3-Clause
// Nodes that are stopped in order and started again, each as often as a rollout does it. The commands are those of packaging/, as they
// stand there.
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <boost/algorithm/string/join.hpp>
#include <boost/algorithm/string/replace.hpp>
#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include "actors/loopback_nodes.hpp"
#include "hosts/testbed.hpp"
#include "support/contains.hpp"
#include "support/small_run.hpp"

using namespace troupe::hosts;
using troupe::apps::test::program_under_test;
using troupe::test::becomes_true;
using troupe::test::contains;

namespace {

namespace fs = std::filesystem;
using words = std::vector<std::string>;

const fs::path packaging = TROUPE_PACKAGING;

std::vector<std::string> lines_of(const fs::path& file) {
  std::ifstream in(file);
  if (!in) throw std::runtime_error("can't read " + file.string());
  std::vector<std::string> result;
  for (std::string line; std::getline(in, line);) result.push_back(line);
  return result;
}

/// The script that a pod of packaging/kubernetes.yaml runs: the lines below "- |", which are indented more than that one.
std::string script_of_pods() {
  std::string result;
  std::size_t indent = 0;
  for (const auto& line : lines_of(packaging / "kubernetes.yaml")) {
    const auto first = line.find_first_not_of(' ');
    if (indent > 0 && (first == std::string::npos || first <= indent)) break;
    if (indent > 0) result += line.substr(first) + "\n";
    if (first != std::string::npos && line.substr(first) == "- |") indent = first;
  }
  BOOST_TEST_REQUIRE(!result.empty());
  return result;
}

/// The command of packaging/troupe@.service for an instance, with the options that its comment gives to nodes that others reach.
std::string command_of_service(const std::string& instance) {
  std::string command;
  std::string options;
  for (const auto& line : lines_of(packaging / "troupe@.service")) {
    const std::string start = "ExecStart=";
    const std::string given = "#   Environment=\"OPTIONS=";
    if (line.starts_with(start)) command = line.substr(start.size());
    if (line.starts_with(given)) options = line.substr(given.size(), line.rfind('"') - given.size());
  }
  BOOST_TEST_REQUIRE(!command.empty());
  BOOST_TEST_REQUIRE(!options.empty());
  boost::replace_all(command, "$OPTIONS", options);
  boost::replace_all(command, "/usr/local/bin/troupe", program_under_test());
  boost::replace_all(command, "/run/credentials/troupe@stage1.service/kit.pem", instance + ".pem");
  boost::replace_all(command, "%S/troupe/%i", "data");
  boost::replace_all(command, "%i", instance);
  return command;
}

/// The command that the comment of packaging/Dockerfile gives for a node with seeds. It has to be the command of the image, with more
/// options.
std::string command_of_container(const std::string& instance) {
  words entry;
  words own;
  std::string command;
  for (const auto& line : lines_of(packaging / "Dockerfile")) {
    const std::string given = "#   docker run ";
    if (line.starts_with("ENTRYPOINT ")) entry = nlohmann::json::parse(line.substr(11)).get<words>();
    if (line.starts_with("CMD ")) own = nlohmann::json::parse(line.substr(4)).get<words>();
    if (line.starts_with(given)) command = line.substr(4);
  }
  BOOST_TEST_REQUIRE(entry == words{"troupe"}, boost::test_tools::per_element());
  BOOST_TEST_REQUIRE(own.size() > 3U);
  BOOST_TEST_REQUIRE(own[1] == "--name");
  own[2] = "stage1";
  BOOST_TEST_REQUIRE(contains(command, " troupe " + boost::join(own, " ") + " --join "), command);
  boost::replace_all(command, "stage1", instance);
  boost::replace_all(command, "/var/lib/troupe/data", "data");
  return "docker() { until [ $1 = troupe ]; do shift; done; shift; exec " + program_under_test() + " \"$@\"; }\n" + command;
}

/// Three hosts, with a kit for each of three nodes.
struct three_hosts {
  explicit three_hosts(const words& nodes) {
    certs({"init"});
    for (std::size_t i = 0; i < 3; ++i) {
      certs({"node", nodes[i]});
      if (i > 0) fs::copy_file(all["h1"].folder() / (nodes[i] + ".pem"), all[on[i]].folder() / (nodes[i] + ".pem"));
      if (i > 0) fs::copy_file(all["h1"].folder() / "troupe-authority" / "revoked.pem", all[on[i]].folder() / "revoked.pem");
    }
    fs::copy_file(all["h1"].folder() / "troupe-authority" / "revoked.pem", all["h1"].folder() / "revoked.pem");
  }

  void certs(words arguments) {
    arguments.insert(arguments.begin(), "certs");
    auto run = all["h1"].troupe(arguments);
    BOOST_TEST_REQUIRE(run.how_it_ends() == "exited with 0", run.text());
  }

  void start(std::size_t which, const std::string& command) {
    nodes[which].reset(new program(all[on[which]].start("sh", {"-c", command})));
    address_of(*nodes[which]);
  }
  void stop(std::size_t which) {
    nodes[which]->signal(SIGTERM);
    BOOST_TEST(nodes[which]->how_it_ends() == "exited with 0", nodes[which]->text());
  }

  /// The names of the peers that are up, as the node sees them.
  std::string peers_of(std::size_t which, const std::string& kit) {
    auto asking = all[on[which]].troupe({"status", "127.0.0.1:4001", "--json", "--certificates", kit});
    if (asking.how_it_ends() != "exited with 0") return asking.text();
    const auto status = nlohmann::json::parse(asking.text());
    std::string result;
    for (const auto& peer : status["peers"])
      if (peer["up"].get<bool>()) result += peer["name"].get<std::string>() + " ";
    return result;
  }

  void check_that_all_know_each_other(const words& names) {
    for (std::size_t i = 0; i < 3; ++i) {
      std::string others;
      for (std::size_t k = 0; k < 3; ++k)
        if (k != i) others += names[k] + " ";
      BOOST_TEST(becomes_true([&] { return peers_of(i, names[i] + ".pem") == others; }, std::chrono::seconds(60)),
                 names[i] << " knows " << peers_of(i, names[i] + ".pem") << "; it said: " << nodes[i]->text());
    }
  }

  const words on{"h1", "h2", "h3"};
  testbed all{on};
  std::unique_ptr<program> nodes[3];
};

}  // namespace

BOOST_AUTO_TEST_SUITE(hosts, *boost::unit_test::precondition(makes_hosts))

BOOST_AUTO_TEST_CASE(three_pods_of_kubernetes_know_each_other_after_two_rollouts) {
  const words pods{"troupe-0", "troupe-1", "troupe-2"};
  three_hosts here(pods);
  const auto start = [&](std::size_t which) {
    here.all.add_name(here.on[which],
                      pods[which] + ".troupe");  // the name of a pod stands for an address while the pod is there
    auto script = script_of_pods();
    boost::replace_all(script, "exec troupe", "exec " + program_under_test());
    boost::replace_all(script, "/kit.pem", pods[which] + ".pem");
    boost::replace_all(script, "/revoked/", "");
    boost::replace_all(script, "--data-dir /data", "--data-dir data");
    here.start(which, "POD_NAME=" + pods[which] + "\n" + script);  // returns when the pod is ready
  };
  for (std::size_t i = 0; i < 3; ++i) start(i);
  here.check_that_all_know_each_other(pods);
  for (int rollout = 0; rollout < 2; ++rollout) {
    for (const std::size_t i : {2U, 1U, 0U}) {
      here.stop(i);
      here.all.remove_name(pods[i] + ".troupe");
      start(i);
    }
    here.check_that_all_know_each_other(pods);
  }
}

/// Starts three nodes, each by its command, and stops and starts each of them twice; then stops all, and starts them in another order.
void check_whichever_starts_first(std::string (*command)(const std::string& instance)) {
  const words names{"stage1", "stage2", "stage3"};
  three_hosts here(names);
  const auto start = [&](std::size_t which) { here.start(which, command(names[which])); };
  for (const std::size_t i : {1U, 2U, 0U}) start(i);
  here.check_that_all_know_each_other(names);
  for (int rollout = 0; rollout < 2; ++rollout)
    for (std::size_t i = 0; i < 3; ++i) {
      here.stop(i);
      start(i);
    }
  here.check_that_all_know_each_other(names);
  for (std::size_t i = 0; i < 3; ++i) here.stop(i);
  for (const std::size_t i : {2U, 0U, 1U}) start(i);
  here.check_that_all_know_each_other(names);
}

BOOST_AUTO_TEST_CASE(three_services_of_systemd_know_each_other_whichever_starts_first) {
  check_whichever_starts_first([](auto& instance) { return "exec " + command_of_service(instance); });
}

BOOST_AUTO_TEST_CASE(three_containers_know_each_other_whichever_starts_first) {
  check_whichever_starts_first(command_of_container);
}

BOOST_AUTO_TEST_CASE(a_job_of_slurm_has_its_whole_cluster_whenever_it_runs_again) {
  const testbed all({"h1", "h2"});
  const auto& batch_host = all["h1"];
  const auto write_program = [&](const std::string& name, const std::string& text) {
    const auto file = batch_host.folder() / name;
    std::ofstream(file) << "#!/bin/sh\n" << text;
    fs::permissions(file, fs::perms::owner_all);
  };
  write_program("scontrol", "[ \"$*\" = 'show hostnames h[1-2]' ] && printf 'h1\\nh2\\n'\n");
  write_program("srun",
                "for each; do case $each in --nodelist=*) host=${each#*=};; --*) ;; *) break;; esac; shift; done\n"
                "exec ip netns exec " +
                  boost::replace_last_copy(batch_host.net_namespace(), "h1", "$host") + " \"$@\"\n");
  std::ofstream(batch_host.folder() / "cluster.json") << R"({"nodes": [{"name": "stage1", "port": 4001}, {"name": "stage2"}]})";
  const auto submit = [&](words driver) {
    driver.insert(driver.begin(),
                  {"-c", "export PATH=\"$PWD:$PATH\" SLURM_JOB_NODELIST='h[1-2]' TROUPE=\"$1\"; shift; exec bash \"$0\" \"$@\"",
                   packaging / "troupe.sbatch", program_under_test(), "cluster.json"});
    return batch_host.start("sh", driver);
  };
  const auto training = [&](const troupe::apps::test::small_run& run, const std::string& steps) {
    auto driver = run.command({"--host", "0.0.0.0", "--checkpoint-every", "20", "--steps", steps});
    driver.insert(driver.begin(), program_under_test());
    return driver;
  };
  const auto check_whole = [](program& job) {
    BOOST_TEST(!job.line_with("2 nodes are up").empty(), job.text());
    BOOST_TEST(!job.line_with("cluster: driver,stage1,stage2").empty(), job.text());
  };
  const troupe::apps::test::small_run cancelled_runs[2];  // a driver that was told to stop still writes for a while
  for (const auto& run : cancelled_runs) {
    auto cancelled = submit(training(run, "1000000"));
    check_whole(cancelled);
    BOOST_TEST_REQUIRE(appears(run.file("checkpoint/checkpoint.json"), cancelled), cancelled.text());
    kill(-cancelled.pid(), SIGTERM);  // as `scancel --full`: the script and the driver
    BOOST_TEST(contains(cancelled.how_it_ends(), "15"), cancelled.text());
    const troupe::apps::test::small_run again;
    auto whole = submit(training(again, "20"));
    check_whole(whole);
    BOOST_TEST(whole.how_it_ends(std::chrono::seconds(60)) == "exited with 0", whole.text());
  }
}

BOOST_AUTO_TEST_CASE(a_dead_seed_ends_no_node_and_is_met_when_it_comes) {
  const testbed all({"h1", "h2", "h3"});
  const auto node = [&](const std::string& name, const std::string& on, words more) {
    words arguments{"node", "--name", name, "--host", "0.0.0.0", "--port", "4001"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return all[on].troupe(arguments);
  };
  auto b = node("b", "h2", {"--join", "h1:4001", "--join-wait", "0"});
  const auto waits = b.line_with("waits for a node to join");
  BOOST_TEST(contains(waits, "h1:4001: no node listens at h1:4001"), b.text());
  auto c = node("c", "h3", {"--join", "h1:4001", "--join", "h2:4001"});  // the node listens while it waits for a seed itself
  address_of(c);
  auto a = node("a", "h1", {});
  address_of(a);
  address_of(b);
  for (const auto* peer : {"peer 'b' is up", "peer 'c' is up"}) BOOST_TEST(!a.line_with(peer).empty(), a.text());
}

BOOST_AUTO_TEST_CASE(a_node_that_meets_no_seed_in_time_says_what_was_seen_at_each) {
  const testbed all({"h1", "h2"});
  auto node = all["h2"].troupe({"node", "--name", "b", "--host", "0.0.0.0", "--port", "4001", "--join", "h1:4001", "--join",
                                "h9:4001", "--join-wait", "1"});
  BOOST_TEST(node.how_it_ends() == "exited with 1");
  const auto said = node.line_with("troupe: ");
  for (const auto* part : {"joining h1:4001, h9:4001 from node 'b'", "met none of the seeds within ",
                           "no node listens at h1:4001", "the host name 'h9' has no address"})
    BOOST_TEST(contains(said, part), said);
}

BOOST_AUTO_TEST_SUITE_END()
