// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/apps/launch_command_test.cpp
#include "apps/commands/commands.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <troupe/actors/settings.hpp>
#include <troupe/actors/support/owned_descriptor.hpp>
#include <troupe/messages/mutex.hpp>

#include "apps/cluster_file.hpp"
#include "apps/command_line.hpp"
#include "apps/kits_in_memory.hpp"
#include "apps/node_starter.hpp"
#include "apps/process_group.hpp"
#include "apps/ready_line.hpp"
#include "apps/signals.hpp"

namespace troupe::apps {

namespace {

using clock = std::chrono::steady_clock;

constexpr auto glance = std::chrono::milliseconds(50);           // interval between two checks of nodes and signals
constexpr auto time_to_leave = std::chrono::milliseconds(1500);  // longer than the longest time that a node needs

constexpr auto pause_between_signs = std::chrono::seconds(1);  // between two signs of life for nodes on other hosts

struct launch_options {
  std::string file;
  std::string ssh = "ssh";
  bool slurm = false;
  int deadline_ms = 30'000;
  bool insecure = false;
  std::vector<std::string> load{"charlm"};
  settings of_nodes;  // the options of their log
};

/// The nodes of a cluster file as processes.
class cluster {
 public:
  cluster(node_starter starter, const stop_signal& stop)
      : starter_(std::move(starter)), stop_(stop), processes_([this](auto& name, auto& line) { heard(name, line); }) {}

  /// Makes a kit for each node.
  void make_certificates() { certificates_.emplace(); }

  /// Returns when all nodes are up, or a stop was asked for. Throws std::runtime_error with the node's name if a node ends or
  /// is late.
  void start(clock::time_point deadline) {
    auto& first = starter_.nodes().front();
    start(first, {});
    wait_until_up(1, deadline);
    for (std::size_t i = 1; i < starter_.nodes().size() && !stop_.requested(); ++i)
      start(starter_.nodes()[i], address_of(first.name));
    wait_until_up(starter_.nodes().size(), deadline);
  }

  void print_table() {
    std::size_t width = 4;
    for (auto& node : starter_.nodes()) width = std::max(width, node.name.size());
    auto columns = static_cast<int>(width);
    std::printf("%-*s  %-21s  %8s  %7s  %7s\n", columns, "node", "address", "pid", "workers", "threads");
    for (auto& node : starter_.nodes())
      std::printf("%-*s  %-21s  %8d  %7zu  %7zu\n", columns, node.name.c_str(), address_of(node.name).c_str(),
                  pids_.at(node.name), node.workers, node.threads);
    if (certificates_)
      std::printf("certificates were made for as long as this command runs; a driver on this host: --certificates %s\n",
                  certificates_->drivers_kit().c_str());
    std::printf("%zu %s up; Ctrl-C stops %s\n", starter_.nodes().size(), starter_.nodes().size() == 1 ? "node is" : "nodes are",
                starter_.nodes().size() == 1 ? "it" : "them");
    std::fflush(stdout);
  }

  /// Returns when a stop was asked for. Throws if a node ends.
  void watch() {
    while (!stop_.requested()) throw_if_one_ended(wait_a_glance());
  }

  /// Ends all nodes. When the stdin of a node on another host ends, the node ends, and then the command that started it.
  void stop() {
    signs_of_life_.clear();
    const auto until = clock::now() + time_to_leave;
    while (clock::now() < until && any_remote_runs()) processes_.poll_for(glance);
    processes_.stop_all(time_to_leave);
  }

 private:
  void start(const cluster_node& node, const std::string& join) {
    auto command = starter_.command(node, join);
    if (!starter_.is_remote(node) && !certificates_) {
      pids_[node.name] = processes_.start(node.name, std::move(command));
      return;
    }
    auto input = support::make_pipe();
    if (!input.read) throw std::system_error(errno, std::generic_category(), "cannot hold node " + node.name);
    fcntl(input.write.get(), F_SETFL, O_NONBLOCK);  // a host that is cut off must not hold up other hosts
    if (certificates_) {
      const auto kit = certificates_->kit_of(node.name);
      if (::write(input.write.get(), kit.data(), kit.size()) != static_cast<ssize_t>(kit.size()))
        throw std::system_error(errno, std::generic_category(), "cannot hand node " + node.name + " its kit");
    }
    pids_[node.name] = processes_.start(node.name, std::move(command), input.read.get());
    if (starter_.is_remote(node)) signs_of_life_.push_back(std::move(input.write));
  }

  /// To be called again and again: a node on another host ends if it does not hear of this process for some time.
  std::optional<process_group::exited> wait_a_glance() {
    if (const auto now = clock::now(); now >= next_sign_) {
      next_sign_ = now + pause_between_signs;
      for (const auto& each : signs_of_life_) [[maybe_unused]] const auto written = ::write(each.get(), "\n", 1);
    }
    return processes_.poll_for(glance);
  }

  const cluster_node& node_named(const std::string& name) const {
    const auto& nodes = starter_.nodes();
    return *std::find_if(nodes.begin(), nodes.end(), [&](const auto& each) { return each.name == name; });
  }

  void heard(const std::string& name, const std::string& line) {
    auto ready = ready_line::parse(line, starter_.ready_token());
    if (!ready || ready->name != name) return lines_(name, line);
    if (auto host = starter_.reached_at(node_named(name)); !host.empty()) ready->host = std::move(host);
    checked_lock lock(mutex_);
    addresses_[name] = ready->address();
  }

  void wait_until_up(std::size_t count, clock::time_point deadline) {
    while (!stop_.requested() && up() < count) {
      throw_if_one_ended(wait_a_glance());
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

  bool any_remote_runs() const {
    const auto running = processes_.running();
    return std::any_of(starter_.nodes().begin(), starter_.nodes().end(), [&](const auto& node) {
      const auto pid = pids_.find(node.name);
      return starter_.is_remote(node) && pid != pids_.end() &&
             std::find(running.begin(), running.end(), pid->second) != running.end();
    });
  }

  std::size_t up() {
    checked_lock lock(mutex_);
    return addresses_.size();
  }

  std::string address_of(const std::string& name) {
    checked_lock lock(mutex_);
    auto found = addresses_.find(name);
    return found == addresses_.end() ? "" : found->second;
  }

  std::string missing() {
    for (auto& node : starter_.nodes())
      if (address_of(node.name).empty()) return node.name;
    return "one";
  }

  const node_starter starter_;
  std::optional<launch_certificates> certificates_;
  const stop_signal& stop_;
  process_group::line_sink lines_ = lines_with_names();
  checked_mutex mutex_;
  std::map<std::string, std::string> addresses_ TROUPE_GUARDED_BY(mutex_);
  std::map<std::string, pid_t> pids_;
  std::vector<support::owned_descriptor> signs_of_life_;  // write ends of the stdin of nodes on other hosts
  clock::time_point next_sign_{};
  process_group processes_;
};

/// Whether nodes are reached from other hosts, and the file does not say how they prove who they are.
bool needs_certificates(const cluster_file& file, bool slurm) {
  const auto says_how = [](const cluster_node& node) {
    return node.insecure || !node.certificates.empty() ||
           std::any_of(node.options.begin(), node.options.end(), [](const std::string& option) {
             return option.starts_with("--certificates") || option.starts_with("--insecure");
           });
  };
  const auto is_reached = [&](const cluster_node& node) { return slurm || !node.ssh.empty() || !is_loopback(node.host); };
  return std::any_of(file.nodes.begin(), file.nodes.end(), is_reached) &&
         std::none_of(file.nodes.begin(), file.nodes.end(), says_how);
}

void run_launch(const launch_options& options) {
  start_options how;
  how.ssh.clear();
  std::istringstream words(options.ssh);
  for (std::string word; words >> word;) how.ssh.push_back(word);
  if (how.ssh.empty()) throw std::runtime_error("--ssh: expected a command such as 'ssh -F FILE', got an empty text");
  if (options.insecure) how.of_node.emplace_back("--insecure");
  how.load = options.load;
  auto file = cluster_file::read(options.file, options.of_nodes);
  stop_signal stop;
  if (options.slurm) how.slurm_hosts = hosts_of_allocation();
  const bool makes_certificates = !options.insecure && needs_certificates(file, options.slurm);
  if (makes_certificates && options.slurm)
    std::fprintf(
      stderr,
      "warning: srun sends the nodes their keys, and encrypts nothing unless your Slurm is set up to: who listens on the "
      "network of "
      "the allocation can act as a node; if strangers can, make kits with `troupe certs node` and name them in the file: "
      "\"options\": [\"--certificates\", \"FILE\"]\n");
  if (makes_certificates) how.of_node.insert(how.of_node.end(), {"--certificates", "-"});
  cluster nodes(node_starter(std::move(file), std::move(how), options.file), stop);
  try {
    if (makes_certificates) nodes.make_certificates();
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
  {"nodes": [{"name": "stage1", "host": "127.0.0.1", "port": 4001, "workers": 1, "pass_workers": 0,
              "threads": 1},
             {"name": "stage2"}]}

A node with "ssh" is started on another host, where troupe has to be installed and ssh has to log in without a
password; it ends with this command, also if the connection is cut:
  {"nodes": [{"name": "stage1", "ssh": "h1", "port": 4001, "options": ["--data-dir", "/var/lib/troupe"]},
             {"name": "stage2", "ssh": "user@h2", "port": 4001, "program": "/opt/troupe/bin/troupe", "folder": "/tmp"}]}

Nodes that other hosts reach get certificates, which are sent by ssh (with --slurm by srun, and a warning) and exist as
long as this command runs. A file whose nodes have "options": ["--certificates", FILE] brings its own.

Example:
  troupe launch cluster.json

Example: within an allocation of Slurm, on whose hosts the nodes are started in turn
  troupe launch cluster.json --slurm)";

}  // namespace

void add_launch_command(CLI::App& app) {
  auto options = std::make_shared<launch_options>();
  auto* command = app.add_subcommand("launch", "Start the nodes of a cluster file, here or on other hosts, and watch them");
  command->option_defaults()->always_capture_default();
  command->add_option("FILE", options->file, "The cluster file (JSON)")->required();
  command->add_option("--deadline-ms", options->deadline_ms, "Milliseconds until every node has to be up")
    ->check(between(1, 86'400'000));
  command->add_option("--ssh", options->ssh, "The command that reaches other hosts, with options: 'ssh -F FILE'")
    ->type_name("COMMAND");
  command->add_flag("--slurm", options->slurm, "Start the nodes by srun on the hosts of this allocation, in turn");
  command->add_flag("--insecure", options->insecure,
                    "Start every node with --insecure (see `troupe node --help`), without certificates");
  command
    ->add_option("--load", options->load,
                 "Library of each node whose \"options\" in the file name none (see `troupe node --help`); may repeat")
    ->allow_extra_args(false)
    ->type_name("LIBRARY")
    ->default_str("charlm");
  add_node_options(*command, options->of_nodes, log_options);
  command->footer(launch_examples);
  command->callback([options] { run_launch(*options); });
}

}  // namespace troupe::apps
