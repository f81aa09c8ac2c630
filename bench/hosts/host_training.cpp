// SPDX-License-Identifier: BSD-3-Clause
#include "host_training.hpp"

#include <fstream>

#include <nlohmann/json.hpp>

#include "../support/train_options.hpp"
#include "apps/ready_line.hpp"
#include "host_process.hpp"

namespace troupe::bench {

namespace {

constexpr auto longest_run = std::chrono::minutes(10);

}  // namespace

std::unique_ptr<hosts::program> started_node(const hosts::host& on, const std::string& name, int port,
                                             const std::vector<std::string>& more) {
  std::vector<std::string> arguments{"node",   "--load=charlm", "--name", name,
                                     "--host", "0.0.0.0",       "--port", std::to_string(port)};
  arguments.insert(arguments.end(), more.begin(), more.end());
  std::unique_ptr<hosts::program> node(new hosts::program(on.troupe(arguments)));
  if (node->line_that([](const auto& line) { return apps::ready_line::parse(line).has_value(); }).empty())
    throw std::runtime_error("expected node '" + name + "' to come up, but it wrote:" + last_words(*node));
  return node;
}

host_training::host_training(const hosts::testbed& all, const std::string& driver, const std::string& stage1,
                             const std::string& stage2)
    : driver_(all[driver]), cluster_(all[driver].folder() / "cluster.json") {
  auto nodes = nlohmann::json::array();
  for (const auto& on : {stage1, stage2}) {
    const auto number = static_cast<int>(nodes.size());
    const auto name = "stage" + std::to_string(number + 1);
    // Hosts never share memory. These processes could, because they are on one machine.
    stages_.push_back(started_node(all[on], name, port_of_nodes + number, {"--no-shared-memory", "--no-direct-memory"}));
    nodes.push_back({{"name", name}, {"host", on == driver ? "127.0.0.1" : on}, {"port", port_of_nodes + number}});
  }
  std::ofstream(cluster_) << nlohmann::json{{"nodes", nodes}};
}

double host_training::tokens_per_second(int steps, bool quick) {
  const auto out = driver_.folder() / "run";
  words arguments{"train", "--cluster", cluster_, "--host", "0.0.0.0", "--out", out};
  add(arguments, size_options(steps, quick));
  add(arguments, nothing_but_training());
  add(arguments, {"--single-process-seconds", "0"});
  auto run = driver_.troupe(arguments);
  if (const auto end = run.how_it_ends(longest_run); end != "exited with 0")
    throw std::runtime_error("the training " + end + "; it wrote:" + last_words(run));
  std::ifstream summary(out / "summary.json");
  return nlohmann::json::parse(summary)["tokens_per_second"].get<double>();
}

double link_bytes(const hosts::host& of) {
  const std::string folder = "/sys/class/net/eth0/statistics/";
  auto reading = of.start("cat", {folder + "rx_bytes", folder + "tx_bytes"});
  if (reading.how_it_ends() != "exited with 0")
    throw std::runtime_error("can't read the counters of a link: " + reading.text());
  double sum = 0;
  for (const auto& line : reading.lines()) sum += std::stod(line);
  return sum;
}

}  // namespace troupe::bench
