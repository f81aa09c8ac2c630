// SPDX-License-Identifier: BSD-3-Clause
// The commands of docs/three_hosts.md, as they stand there.
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <boost/algorithm/string/split.hpp>
#include <boost/test/unit_test.hpp>

#include "hosts/testbed.hpp"
#include "support/contains.hpp"

using namespace std::chrono_literals;
using namespace troupe::hosts;
using troupe::test::contains;

namespace {

/// The blocks of a page that begin with ```<language>.
std::vector<std::string> blocks_of(const std::string& file, const std::string& language) {
  std::ifstream page(file);
  if (!page) throw std::runtime_error("can't read " + file);
  std::vector<std::string> result;
  bool inside = false;
  for (std::string line; std::getline(page, line);) {
    if (line == "```" + language) {
      inside = true;
      result.emplace_back();
    } else if (line == "```") {
      inside = false;
    } else if (inside) {
      result.back() += line + "\n";
    }
  }
  return result;
}

/// The commands of all blocks: the host, and the words after "troupe".
std::vector<std::pair<std::string, std::vector<std::string>>> commands_of(const std::string& file) {
  std::vector<std::pair<std::string, std::vector<std::string>>> result;
  for (const auto& block : blocks_of(file, "console")) {
    std::istringstream lines(block);
    for (std::string line; std::getline(lines, line);) {
      const auto end = line.find("$ troupe ");
      BOOST_TEST_REQUIRE(end != std::string::npos, "a command that this test can't run: " << line);
      auto& [host, words] = result.emplace_back();
      host = line.substr(0, end);
      boost::split(words, line.substr(end + std::string("$ troupe ").size()), [](char c) { return c == ' '; });
    }
  }
  return result;
}

/// As the page's commands with scp do.
void copy_kits(const testbed& all) {
  for (const std::string node : {"stage1", "stage2"})
    if (const auto kit = all["h3"].folder() / (node + ".pem"); std::filesystem::exists(kit))
      std::filesystem::copy_file(kit, all[node == "stage1" ? "h1" : "h2"].folder() / kit.filename(),
                                 std::filesystem::copy_options::overwrite_existing);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(hosts, *boost::unit_test::precondition(makes_hosts))

BOOST_AUTO_TEST_CASE(the_commands_of_the_tutorial_work_as_they_stand_there) {
  const std::string page = TROUPE_TUTORIAL;
  testbed all({"h1", "h2", "h3"});
  const auto files = blocks_of(page, "json");
  BOOST_TEST_REQUIRE(files.size() == 1u);
  std::ofstream(all["h3"].folder() / "cluster.json") << files[0];
  std::map<std::string, std::unique_ptr<program>> nodes;  // by host
  int trained = 0;
  for (const auto& [host, words] : commands_of(page)) {
    if (words[0] == "node") {
      if (const auto old = nodes.find(host); old != nodes.end()) {
        old->second->signal(SIGTERM);
        BOOST_TEST(old->second->how_it_ends() == "exited with 0");
      }
      nodes[host].reset(new program(all[host].troupe(words)));
      address_of(*nodes[host]);
      continue;
    }
    auto run = all[host].troupe(words);
    if (words[0] == "certs") {
      BOOST_TEST(run.how_it_ends() == "exited with 0", run.text());
      copy_kits(all);
      continue;
    }
    BOOST_TEST(run.how_it_ends(180s) == "exited with 0", run.text());
    if (words[0] == "status")
      for (const auto* name : {"stage1", "stage2"}) BOOST_TEST(contains(run.text(), name), run.text());
    trained += words[0] == "train";
  }
  BOOST_TEST(trained == 2);
  BOOST_TEST(std::filesystem::exists(all["h3"].folder() / "run" / "metrics.jsonl"));
}

BOOST_AUTO_TEST_SUITE_END()
