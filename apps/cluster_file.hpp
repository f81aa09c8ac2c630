// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <troupe/actors/settings.hpp>

namespace troupe::apps {

/// One node of a cluster file: its settings, and how its process is started. A node with `ssh` listens on 0.0.0.0 unless the
/// file names another host.
struct cluster_node : settings {
  std::size_t threads = 1;  // threads of libtorch inside one operation
  std::string ssh;          // "host" or "user@host" on which `troupe launch` starts the node; empty: this host
  std::string program;      // path of the program on the node's host; empty: `troupe` in PATH, on this host this program
  std::string folder;       // working folder on the node's host; empty: the folder in which ssh or this process starts
  std::vector<std::string> options;  // more options for `troupe node`

  /// The address or host name by which other nodes reach this node: `advertise`, or else `host`. If `host` is a wildcard such
  /// as 0.0.0.0, the host in `ssh` is used. Empty if `ssh` is empty too.
  std::string reached_at() const;
};

/// The nodes of a small cluster, in the order in which they start. All other nodes join the first one.
///   {"nodes": [{"name": "stage1", "port": 4001}, {"name": "stage2", "workers": 2, "threads": 2}]}
/// Each option of a node is a field, except `--join`; docs/options.md names the fields.
///   CF-1  a mistake throws std::runtime_error with the file, the field, what was expected and what the file has.
///   CF-2  an unknown field is a mistake. Two nodes with the same name or address are a mistake too. No value is guessed.
///   CF-3  texts in the fields `ssh` and `program` can't begin with '-'. So they can't be options, such as
///         "-oProxyCommand=...".
///   CF-4  a device map has to name a node of the file and devices that libtorch knows.
struct cluster_file {
  std::string origin;  // the file's path, for error texts
  std::vector<cluster_node> nodes;

  /// Reads a cluster file. `unless_told`: the settings of each node for the fields that the file leaves out.
  static cluster_file read(const std::string& path, const settings& unless_told = {});
  /// As read(), for the text of a file. `origin` names the file in error texts.
  static cluster_file parse(const std::string& text, const std::string& origin, const settings& unless_told = {});
};

/// Throws std::runtime_error if the name is not a valid node name (valid_node_name) or begins with '-' like an option. The
/// error names `field`.
void check_node_name(const std::string& name, const std::string& field);

}  // namespace troupe::apps
