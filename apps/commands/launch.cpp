// SPDX-License-Identifier: BSD-3-Clause
#include "apps/commands/launch.hpp"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>

#include "apps/cluster_file.hpp"
#include "apps/command_line.hpp"
#include "apps/log_options.hpp"
#include "apps/process_group.hpp"
#include "apps/ready_line.hpp"
#include "apps/signals.hpp"

namespace troupe::apps {

namespace {

using clock = std::chrono::steady_clock;

constexpr auto glance = std::chrono::milliseconds(50);           // interval between two checks of nodes and signals
constexpr auto time_to_leave = std::chrono::milliseconds(1500);  // longer than the longest time that a node needs

struct launch_options {
  std::string file;
  int deadline_ms = 30'000;
  log_options log{severity::warn};
};

/// The nodes of a cluster file as processes.
class cluster {
 public:
  cluster(cluster_file file, const stop_signal& stop, const log_options& log)
      : file_(std::move(file)), stop_(stop), log_(log), processes_([this](auto& name, auto& line) { heard(name, line); }) {}

  /// Returns when all nodes are up, or a stop was asked for. Throws std::runtime_error with the node's name if a node ends or
  /// is late.
  void start(clock::time_point deadline) {
    auto& first = file_.nodes.front();
    start(first, {});
    wait_until_up(1, deadline);
    for (std::size_t i = 1; i < file_.nodes.size() && !stop_.requested(); ++i) start(file_.nodes[i], address_of(first.name));
    wait_until_up(file_.nodes.size(), deadline);
  }

  void print_table() {
    std::size_t width = 4;
    for (auto& node : file_.nodes) width = std::max(width, node.name.size());
    auto columns = static_cast<int>(width);
    std::printf("%-*s  %-21s  %8s  %7s  %7s\n", columns, "node", "address", "pid", "workers", "threads");
    for (auto& node : file_.nodes)
      std::printf("%-*s  %-21s  %8d  %7zu  %7zu\n", columns, node.name.c_str(), address_of(node.name).c_str(),
                  pids_.at(node.name), node.workers, node.threads);
    std::printf("%zu %s up; Ctrl-C stops %s\n", file_.nodes.size(), file_.nodes.size() == 1 ? "node is" : "nodes are",
                file_.nodes.size() == 1 ? "it" : "them");
    std::fflush(stdout);
  }

  /// Returns when a stop was asked for. Throws if a node ends.
  void watch() {
    while (!stop_.requested()) throw_if_one_ended(processes_.poll_for(glance));
  }

  void stop() { processes_.stop_all(time_to_leave); }

 private:
  void start(const cluster_node& node, const std::string& join) {
    std::vector<std::string> arguments{own_program(), "node",
                                       "--name",      node.name,
                                       "--host",      node.host,
                                       "--port",      std::to_string(node.port),
                                       "--workers",   std::to_string(node.workers),
                                       "--threads",   std::to_string(node.threads)};
    for (auto& argument : log_.arguments()) arguments.push_back(argument);
    if (!join.empty()) arguments.insert(arguments.end(), {"--join", join});
    pids_[node.name] = processes_.start(node.name, std::move(arguments));
  }

  void heard(const std::string& name, const std::string& line) {
    auto ready = ready_line::parse(line);
    if (!ready || ready->name != name) return lines_(name, line);
    std::lock_guard lock(mutex_);
    addresses_[name] = ready->address();
  }

  void wait_until_up(std::size_t count, clock::time_point deadline) {
    while (!stop_.requested() && up() < count) {
      throw_if_one_ended(processes_.poll_for(glance));
      if (clock::now() >= deadline)
        throw std::runtime_error("expected every node to be up by the deadline, but " + missing() +
                                 " is not; set a longer one with --deadline-ms");
    }
  }

  void throw_if_one_ended(const std::optional<process_group::exited>& end) {
    if (end && !stop_.requested())
      throw std::runtime_error("node " + end->name + " (pid " + std::to_string(end->pid) + ") " + end->how +
                               "; the others were stopped");
  }

  std::size_t up() {
    std::lock_guard lock(mutex_);
    return addresses_.size();
  }

  std::string address_of(const std::string& name) {
    std::lock_guard lock(mutex_);
    auto found = addresses_.find(name);
    return found == addresses_.end() ? "" : found->second;
  }

  std::string missing() {
    for (auto& node : file_.nodes)
      if (address_of(node.name).empty()) return node.name;
    return "one";
  }

  cluster_file file_;
  const stop_signal& stop_;
  const log_options& log_;
  process_group::line_sink lines_ = lines_with_names();
  std::mutex mutex_;
  std::map<std::string, std::string> addresses_;
  std::map<std::string, pid_t> pids_;
  process_group processes_;
};

void run_launch(const launch_options& options) {
  auto file = cluster_file::read(options.file);
  stop_signal stop;
  cluster nodes(std::move(file), stop, options.log);
  try {
    nodes.start(clock::now() + std::chrono::milliseconds(options.deadline_ms));
    if (!stop.requested()) {
      nodes.print_table();
      nodes.watch();
    }
  } catch (...) {
    nodes.stop();
    throw;
  }
  nodes.stop();
}

constexpr const char* launch_examples = R"(The file lists the nodes; all but the name may be left out:
  {"nodes": [{"name": "stage1", "host": "127.0.0.1", "port": 4001, "workers": 1, "threads": 1},
             {"name": "stage2"}]}

Example:
  troupe launch cluster.json)";

}  // namespace

void add_launch_command(CLI::App& app) {
  auto options = std::make_shared<launch_options>();
  auto* command = app.add_subcommand("launch", "Start the nodes of a cluster file and watch them");
  command->option_defaults()->always_capture_default();
  command->add_option("FILE", options->file, "The cluster file (JSON)")->required();
  command->add_option("--deadline-ms", options->deadline_ms, "Milliseconds until every node has to be up")
    ->check(between(1, 86'400'000));
  options->log.add_to(*command);
  command->footer(launch_examples);
  command->callback([options] { run_launch(*options); });
}

}  // namespace troupe::apps
