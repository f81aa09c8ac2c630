// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include "apps/cluster_file.hpp"

namespace troupe::apps {

/// How `troupe launch` starts nodes on other hosts.
struct start_options {
  std::vector<std::string> ssh{"ssh"};   // the command that reaches a host, and its options
  std::vector<std::string> slurm_hosts;  // the hosts of the allocation, for srun; empty: Slurm is not used
  std::vector<std::string> of_node;      // more options of each node
  std::vector<std::string> load;         // libraries for each node whose own options name none
};

/// The commands that start the nodes of a cluster file: on this host, by ssh, or by Slurm's srun.
///   NR-1  the constructor throws std::runtime_error with the file's field. Where there are several hosts, it refuses a node on
///         loopback, and a first node without an address for the others. It refuses a node on this host at another host's
///         address, and `ssh` together with Slurm.
///   NR-2  no text of the file is read as an option or as a command of a shell.
///   NR-3  a node on another host ends within `silence_s` seconds after the command that started it is cut off or killed.
///   NR-4  the ready line of a node carries a token that is new with each starter. No other line of a host is taken for a
///         ready line.
class node_starter {
 public:
  static constexpr int silence_s = 15;

  /// `origin` names the file in error texts.
  node_starter(cluster_file file, start_options options, const std::string& origin);

  const std::vector<cluster_node>& nodes() const noexcept { return nodes_; }

  /// Whether the node is started on another host. It then lives as long as bytes come on the stdin of its command.
  bool is_remote(const cluster_node& node) const { return !node.ssh.empty() || is_slurm(); }
  /// `join`: the address of the node to join; empty for the first node.
  std::vector<std::string> command(const cluster_node& node, const std::string& join) const;
  const std::string& ready_token() const noexcept { return ready_token_; }
  /// The address or host name by which other hosts reach the node.
  std::string reached_at(const cluster_node& node) const;

 private:
  bool is_slurm() const noexcept { return !options_.slurm_hosts.empty(); }
  const std::string& slurm_host(const cluster_node& node) const;

  std::vector<cluster_node> nodes_;
  start_options options_;
  std::string ready_token_;
};

/// The hosts of the Slurm allocation that this process runs in, from the stdout of `scontrol show hostnames`. Messages of
/// scontrol on stderr are shown. Throws std::runtime_error outside of an allocation.
std::vector<std::string> hosts_of_allocation();

/// The text as one word of a POSIX shell.
std::string shell_quoted(const std::string& text);

}  // namespace troupe::apps
