// SPDX-License-Identifier: BSD-3-Clause
#include "apps/charlm/cluster.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>

#include <troupe/actors/support/texts.hpp>
#include <troupe/messages/messages.hpp>

#include "apps/charlm/stage_module.hpp"
#include "apps/command_line.hpp"
#include "apps/ready_line.hpp"

namespace troupe::apps::charlm {

namespace {

using clock = std::chrono::steady_clock;

constexpr auto glance = std::chrono::milliseconds(20);
constexpr auto time_to_answer = std::chrono::seconds(1);
constexpr auto time_to_come_up = std::chrono::seconds(60);
constexpr auto time_to_meet = std::chrono::seconds(10);

std::string describe(const process_group::exited& end) {
  return end.name + " (pid " + std::to_string(end.pid) + ") " + end.how;
}

/// Prints the lines that a stage writes, except its ready line.
process_group::line_sink quiet_lines() {
  return [print = lines_with_names()](const std::string& name, const std::string& line) {
    if (!ready_line::parse(line)) print(name, line);
  };
}

constexpr std::array<std::string_view, 6> as_driver{"--deadline-ms", "--heartbeat-ms", "--trace",
                                                    "--log-level",   "--log-file",     "--log-format"};

/// How long a join may last.
std::chrono::milliseconds time_for_join(const node& driver, clock::time_point until) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - clock::now());
  return std::clamp(left, std::chrono::milliseconds(1), driver.options().deadline);
}

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

stage_nodes stage_nodes::start(node& driver, std::size_t count, const stop_signal& stop, const stage_process& process) {
  stage_nodes nodes;
  nodes.processes_ = std::make_unique<process_group>(quiet_lines());
  const auto address = "127.0.0.1:" + std::to_string(driver.port());
  for (std::size_t i = 1; i <= count; ++i) {
    const auto name = "stage" + std::to_string(i);
    std::vector<std::string> command{own_program(),  "node",        "--name",    name, "--join", address,
                                     "--until-left", driver.name(), "--threads", "1",  "--load", "charlm"};
    if (!process.data_dir.empty()) command.insert(command.end(), {"--data-dir", process.data_dir});
    if (process.cuda) command.push_back("--cuda");
    for (auto& word : node_arguments(driver.options(), as_driver)) command.push_back(std::move(word));
    nodes.processes_->start(name, command);
    nodes.commands_.emplace(name, std::move(command));
    nodes.names_.push_back(name);
  }
  const auto deadline = clock::now() + time_to_come_up;
  for (const auto& name : nodes.names_)
    while (!has(driver.peers(), name) && !stop.requested()) {
      if (const auto end = nodes.processes_->poll_for(glance))
        throw std::runtime_error("expected node " + end->name + " to come up, but " + describe(*end) +
                                 "; what it wrote stands above");
      if (clock::now() >= deadline)
        throw std::runtime_error("expected node " + name + " to come up within " + std::to_string(time_to_come_up.count()) +
                                 " s, but it has not joined");
    }
  return nodes;
}

namespace {

/// The host by which the driver reaches the node. If the file names no host, the node listens on all addresses of this host.
std::string host_of(const cluster_node& of) {
  const auto reached = of.reached_at();
  return reached.empty() ? of.host : reached;
}

}  // namespace

void check_has_port(const cluster_file& file, const cluster_node& which) {
  if (which.port == 0)
    throw std::runtime_error(file.origin + ": node " + which.name +
                             " has no port; write the port that it listens on into the file");
}

void join_node(node& driver, const cluster_file& file, const cluster_node& which,
               std::optional<std::chrono::milliseconds> deadline) {
  std::string came;
  try {
    came = driver.join(host_of(which), which.port, deadline);
  } catch (const error& failure) {
    throw error(failure.code(), "node '" + which.name + "' of " + file.origin + ": " + failure.what());
  }
  if (came != which.name)
    throw std::runtime_error(file.origin + ": expected node " + which.name + " at " + host_of(which) + ":" +
                             std::to_string(which.port) + ", but node " + came + " is there");
}

stage_nodes stage_nodes::join(node& driver, const cluster_file& file, clock::time_point until) {
  stage_nodes nodes;
  for (const auto& each : file.nodes) {
    check_has_port(file, each);
    if (!has(driver.peers(), each.name)) join_node(driver, file, each, time_for_join(driver, until));
    nodes.names_.push_back(each.name);
  }
  nodes.addresses_ = file.nodes;
  return nodes;
}

namespace {

/// Waits until the driver has met the nodes that `first` sees up. A join ends as soon as the driver has met the first node of a
/// cluster.
void meet_the_others(node& driver, const std::string& first, clock::time_point until) {
  const auto all = driver.peer(first).status(time_for_join(driver, until)).peers;
  const auto deadline = std::min(until, clock::now() + time_to_meet);
  for (const auto& each : all)
    while (each.up && each.who.name != driver.name() && !has(driver.peers(), each.who.name) && clock::now() < deadline)
      std::this_thread::sleep_for(glance);
}

}  // namespace

stage_nodes stage_nodes::join(node& driver, const std::string& address, std::vector<std::string> names,
                              clock::time_point until) {
  stage_nodes nodes;
  cluster_node first;
  std::tie(first.host, first.port) = parse_address(address);
  first.name = driver.join(first.host, first.port, time_for_join(driver, until));
  meet_the_others(driver, first.name, until);
  auto up = driver.peers();
  std::sort(up.begin(), up.end());
  for (const auto& name : names) {
    if (std::count(names.begin(), names.end(), name) > 1) throw std::runtime_error("--nodes: " + name + " is named twice");
    if (!has(up, name))
      throw error(errc::unknown_peer, "expected a node " + name + " in the cluster of " + address +
                                        ", but the nodes that are up are " + support::joined(up) + "; see troupe status " +
                                        address + " --cluster");
  }
  nodes.names_ = names.empty() ? std::move(up) : std::move(names);
  nodes.addresses_.push_back(std::move(first));
  return nodes;
}

void stage_nodes::keep_those_for_stages(node& driver) {
  const auto smallest = stage_attributes({1, 1, 1, 1, 1}, {0, 1}, 0);
  std::erase_if(names_, [&](const auto& name) {
    try {
      driver.peer(name, time_to_answer).create(stage_type, smallest);
      return false;
    } catch (const error& failure) {
      const auto code = failure.code();
      if (code == errc::unknown_function || !has(driver.peers(), name)) return true;
      if (code == errc::refused) return false;  // kept: the refusal is reported when its stage is made
      throw;
    }
  });
}

std::vector<peer> stage_nodes::peers(node& driver) const {
  std::vector<peer> all;
  for (const auto& name : names_) all.push_back(driver.peer(name, time_to_answer));
  return all;
}

std::optional<std::string> stage_nodes::lost(std::chrono::milliseconds patience) {
  if (!processes_) return {};
  const auto end = processes_->poll_for(patience);
  if (!end) return {};
  return describe(*end);
}

std::vector<std::string> stage_nodes::missing(const node& driver) const {
  const auto up = driver.peers();
  std::vector<std::string> names;
  std::copy_if(names_.begin(), names_.end(), std::back_inserter(names), [&](const auto& name) { return !has(up, name); });
  return names;
}

void stage_nodes::bring_back(node& driver, clock::time_point until) {
  while (const auto end = processes_ ? processes_->poll() : std::nullopt) processes_->start(end->name, commands_.at(end->name));
  const auto away = missing(driver);
  for (const auto& each : addresses_) {
    if (!has(away, each.name)) continue;
    try {
      driver.join(host_of(each), each.port, time_for_join(driver, std::min(until, clock::now() + time_to_answer)));
    } catch (const error&) {
      // The node is still away, or its cluster dials it already.
    }
  }
}

void stage_nodes::stop(std::chrono::milliseconds grace) {
  if (processes_) processes_->stop_all(grace);
}

}  // namespace troupe::apps::charlm
