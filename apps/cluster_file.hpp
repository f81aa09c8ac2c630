// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <troupe/actors/settings.hpp>

namespace troupe::apps {

/// One node of a cluster file: its settings, and how its process is started. With `ssh`, the node listens on 0.0.0.0 unless
/// the file names another host.
struct cluster_node : settings {
  std::size_t threads = 1;           // threads of libtorch inside one operation
  std::string ssh;                   // "host" or "user@host" on which `troupe launch` starts the node; empty: this host
  std::string program;               // path of the program on that host; empty: `troupe` in PATH, on this host this program
  std::string folder;                // working folder on that host; empty: the folder in which ssh or this process starts
  std::vector<std::string> options;  // more options of `troupe node`

  /// The address or host name by which others reach the node: `advertise`, else `host`, else the host in `ssh`. Empty if the
  /// file names none, because the node listens on all addresses of this host.
  std::string reached_at() const;
};

/// The nodes of a small cluster, in the order in which they start. All other nodes join the first one.
///   {"nodes": [{"name": "stage1", "port": 4001}, {"name": "stage2", "workers": 2, "threads": 2}]}
/// Each option of a node is a field, except `--join`; docs/options.md names the fields.
///   CF-1  a mistake throws std::runtime_error with the file, the field, what was expected and what the file has.
///   CF-2  nothing is guessed: an unknown field is a mistake. Two nodes with the same name or address are a mistake too.
///   CF-3  the fields `ssh` and `program` can't hold an option, such as "-oProxyCommand=...".
///   CF-4  a device map leads to a node of the file, and each of its devices has a name that libtorch knows.
struct cluster_file {
  std::string origin;  // the file's path, for error texts
  std::vector<cluster_node> nodes;

  /// `unless_told`: the settings of each node, unless the file gives others.
  static cluster_file read(const std::string& path, const settings& unless_told = {});
  /// `origin` names the file in error texts.
  static cluster_file parse(const std::string& text, const std::string& origin, const settings& unless_told = {});
};

/// Throws std::runtime_error that names `field` if the name is no valid node name (valid_node_name) or looks like an option.
void check_node_name(const std::string& name, const std::string& field);

}  // namespace troupe::apps
