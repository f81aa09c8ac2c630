// SPDX-License-Identifier: BSD-3-Clause
#include "apps/node_starter.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <troupe/actors/node_options.hpp>
#include <troupe/actors/support/host_lookup.hpp>
#include <troupe/actors/support/owned_descriptor.hpp>

#include "apps/process_group.hpp"
#include "apps/ready_line.hpp"

namespace troupe::apps {

namespace {

constexpr std::chrono::seconds scontrols_deadline{30};

/// The command as a text for a shell.
std::string shell_command(const std::vector<std::string>& words) {
  std::string text;
  for (const auto& word : words) text += (text.empty() ? "" : " ") + shell_quoted(word);
  return text;
}

/// Whether a node's command has the option even with its default value. Every other option with its default value is left out,
/// because a program of an older version may not know it.
bool is_always_told(const node_option& option) {
  constexpr std::array<std::string_view, 5> names{"--name", "--host", "--port", "--workers", "--log-level"};
  return std::ranges::count(names, option.name) > 0;
}

/// Whether this host has the address. True for a name that can't be looked up: the node itself reports that.
bool is_of_this_host(const std::string& host) {
  const auto found = support::look_up(host, 0);
  for (const auto* each = found.addresses.get(); each != nullptr; each = each->ai_next) {
    const support::owned_descriptor socket(::socket(each->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::bind(socket.get(), each->ai_addr, each->ai_addrlen) == 0 || errno != EADDRNOTAVAIL) return true;
  }
  return found.failed();
}

}  // namespace

std::string shell_quoted(const std::string& text) {
  constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=@,+";
  if (!text.empty() && text.find_first_not_of(plain) == std::string::npos) return text;
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

node_starter::node_starter(cluster_file file, start_options options, const std::string& origin)
    : nodes_(std::move(file.nodes)), options_(std::move(options)), ready_token_(ready_line::new_token()) {
  const auto fail = [&](std::size_t node, const std::string& what) {
    throw std::runtime_error(origin + ": nodes[" + std::to_string(node) + "]" + what);
  };
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    if (!is_remote(nodes_[i]) && !is_of_this_host(nodes_[i].host))
      fail(i, ".host: " + nodes_[i].host + " is no address of this host, so the node can't start here; write \"ssh\": \"" +
                nodes_[i].host + "\" to start the node there, or an address of this host");
  const bool several_hosts = std::any_of(nodes_.begin(), nodes_.end(), [&](const auto& node) { return is_remote(node); });
  for (std::size_t i = 0; i < nodes_.size() && several_hosts; ++i) {
    auto& node = nodes_[i];
    if (is_slurm() && !node.ssh.empty()) fail(i, ".ssh: expected none, because --slurm chooses the hosts");
    if (is_slurm() && is_loopback(node.host)) node.host = "0.0.0.0";
    if (is_loopback(node.host))
      fail(i, ".host: " + node.host +
                " is loopback, which nodes of other hosts can't reach; write an address of the node's host, or 0.0.0.0");
    if (i == 0 && reached_at(node).empty())
      fail(
        i,
        ": the other nodes join this one, but the file does not say at which address; write \"advertise\": an address or host "
        "name of this host");
  }
}

const std::string& node_starter::slurm_host(const cluster_node& node) const {
  const auto found = std::find_if(nodes_.begin(), nodes_.end(), [&](const auto& each) { return each.name == node.name; });
  return options_.slurm_hosts[static_cast<std::size_t>(found - nodes_.begin()) % options_.slurm_hosts.size()];
}

std::string node_starter::reached_at(const cluster_node& node) const {
  const auto by_file = node.reached_at();
  return by_file.empty() && is_slurm() ? slurm_host(node) : by_file;
}

std::vector<std::string> node_starter::command(const cluster_node& node, const std::string& join) const {
  std::vector<std::string> run;
  if (!node.folder.empty()) run = {"env", "-C", node.folder};
  run.push_back(!node.program.empty() ? node.program : is_remote(node) && !is_slurm() ? "troupe" : own_program());
  run.emplace_back("node");
  for (const auto& option : node_options())
    if (is_always_told(option) || option.texts(node) != option.texts({}))
      for (auto& word : option.arguments(node)) run.push_back(std::move(word));
  run.insert(run.end(), {"--threads", std::to_string(node.threads)});
  run.insert(run.end(), options_.of_node.begin(), options_.of_node.end());
  run.insert(run.end(), node.options.begin(), node.options.end());
  if (std::ranges::none_of(node.options, [](const auto& option) { return option.starts_with("--load"); }))
    for (const auto& each : options_.load) run.insert(run.end(), {"--load", each});
  if (!join.empty()) run.insert(run.end(), {"--join", join});
  run.insert(run.end(), {"--ready-token", ready_token_});
  if (!is_remote(node)) return run;
  run.insert(run.end(), {"--until-silent", std::to_string(silence_s)});
  if (is_slurm()) {
    std::vector<std::string> all{"srun",      "--nodes=1",    "--ntasks=1",
                                 "--overlap", "--unbuffered", "--nodelist=" + slurm_host(node)};
    all.insert(all.end(), run.begin(), run.end());
    return all;
  }
  auto all = options_.ssh;
  // ssh has no terminal and asks nothing. A connection over which nothing comes ends after 15 s, as the node does (silence_s).
  for (const auto* option : {"BatchMode=yes", "ConnectTimeout=10", "ServerAliveInterval=5", "ServerAliveCountMax=3"})
    all.insert(all.end(), {"-o", option});
  all.insert(all.end(), {"-T", "--", node.ssh, "exec " + shell_command(run)});
  return all;
}

std::vector<std::string> hosts_of_allocation() {
  const char* list = std::getenv("SLURM_JOB_NODELIST");  // NOLINT(concurrency-mt-unsafe): nothing here sets the environment
  if (list == nullptr || *list == '\0')
    throw std::runtime_error(
      "--slurm: expected to run within an allocation (sbatch, salloc), but SLURM_JOB_NODELIST is not set");
  std::mutex mutex;
  std::vector<std::string> hosts;
  std::vector<std::string> messages;
  const auto lines_to = [&](std::vector<std::string>& all) {
    return [&](const std::string&, const std::string& line) {
      const std::lock_guard lock(mutex);
      if (!line.empty()) all.push_back(line);
    };
  };
  {
    process_group scontrol(lines_to(hosts), lines_to(messages));
    scontrol.start("scontrol", {"scontrol", "show", "hostnames", list});
    const auto end = scontrol.poll_for(scontrols_deadline);
    if (!end || end->status != 0) {
      std::string why = end ? end->how : "does not end";
      const std::lock_guard lock(mutex);
      for (const auto& line : messages) why += ": " + line;
      throw std::runtime_error("--slurm: 'scontrol show hostnames " + std::string(list) + "' " + why);
    }
  }
  for (const auto& line : messages) lines_with_names()("scontrol", line);
  if (hosts.empty()) throw std::runtime_error("--slurm: 'scontrol show hostnames " + std::string(list) + "' names no host");
  return hosts;
}

}  // namespace troupe::apps
