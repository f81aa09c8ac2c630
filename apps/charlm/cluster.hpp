// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <troupe/actors/node.hpp>

#include "apps/cluster_file.hpp"
#include "apps/process_group.hpp"
#include "apps/signals.hpp"

namespace troupe::apps::charlm {

/// Options of the started processes.
struct stage_process {
  std::string data_dir;  // their data folder; empty: none
  bool cuda = false;     // they load CUDA's kernels
};

/// Throws std::runtime_error if the file names no port for the node, which then can't be joined.
void check_has_port(const cluster_file& file, const cluster_node& which);

/// Joins a node of the file. Throws std::runtime_error if another node is at its address, and troupe::error if it can't be
/// reached.
void join_node(node& driver, const cluster_file& file, const cluster_node& which,
               std::optional<std::chrono::milliseconds> deadline = {});

/// The nodes that hold the stages: processes started by this program, or running nodes.
///   SN-1  no process that was started outlives this object.
///   SN-2  a lost stage is reported with its name. If this program started its process, the report also has the process number
///         and how the process ended.
///   SN-3  bring_back() starts again the processes that this program started and that have ended, and dials the addresses of
///         running nodes that are known from the start.
///   SN-4  join() and bring_back() end by the time that they are given, however many nodes are frozen.
class stage_nodes {
 public:
  using clock = std::chrono::steady_clock;

  /// Starts `count` processes named stage1, stage2, ... that join the driver. They have the options of the driver for the log,
  /// heartbeats and the trace. Throws std::runtime_error with the node's name if a process ends or is not up in time. Returns
  /// early if a stop was asked for.
  static stage_nodes start(node& driver, std::size_t count, const stop_signal& stop, const stage_process& process = {});
  /// Joins the nodes of a cluster file. Throws troupe::error at `until` at the latest.
  static stage_nodes join(node& driver, const cluster_file& file, clock::time_point until = clock::time_point::max());
  /// As the other join(), for the cluster of the running node at `address` ("host:port"). The stages are the nodes with these
  /// names, in this order; without names they are all nodes of the cluster that are up, in the order of their names. Throws
  /// troupe::error (unknown_peer) if a node with one of the names is not up.
  static stage_nodes join(node& driver, const std::string& address, std::vector<std::string> names,
                          clock::time_point until = clock::time_point::max());
  /// Leaves out the nodes that can't make modules of stage_type: the drivers of other runs, and nodes without charlm.
  void keep_those_for_stages(node& driver);

  const std::vector<std::string>& names() const noexcept { return names_; }
  std::vector<peer> peers(node& driver) const;

  /// How a started process ended, if one has ended or ends within `patience`: "stage1 (pid 4711) killed by signal 9
  /// (Killed)".
  std::optional<std::string> lost(std::chrono::milliseconds patience);

  /// The names of the stages that are not up now.
  std::vector<std::string> missing(const node& driver) const;
  /// Tries to bring back the stages that are not up. Blocks for at most a second or two for each stage, and at most until
  /// `until`.
  void bring_back(node& driver, clock::time_point until = clock::time_point::max());

  /// Ends the started processes. Processes that are left after the grace time are killed.
  void stop(std::chrono::milliseconds grace = std::chrono::milliseconds(700));

 private:
  std::vector<std::string> names_;
  std::vector<cluster_node> addresses_;                       // of the nodes of a cluster file, or of the node that was joined
  std::map<std::string, std::vector<std::string>> commands_;  // of the started processes, by name
  std::unique_ptr<process_group> processes_;
};

}  // namespace troupe::apps::charlm
