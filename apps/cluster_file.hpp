// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace troupe::apps {

/// One node of a cluster file.
struct cluster_node {
  std::string name;
  std::string host = "127.0.0.1";  // address to listen on; with `ssh` all of them (0.0.0.0) unless the file says another
  std::uint16_t port = 0;          // 0: any free port
  std::size_t workers = 1;         // remote calls that run at once
  std::size_t pass_workers = 0;    // threads that run large functions of passes; 0: passes run on one thread
  std::size_t threads = 1;         // threads of libtorch inside one operation
  std::string advertise;           // address or host name by which others reach the node; empty: `host`, or where `ssh` leads
  std::string ssh;                 // "host" or "user@host" on which `troupe launch` starts the node; empty: this host
  std::string program;  // path of the program troupe there; empty: `troupe` in PATH, on this host the running program
  std::string folder;   // working folder there; empty: where ssh or this process starts
  std::vector<std::string> options;      // more options of `troupe node`
  std::vector<std::string> device_maps;  // of the node's calls to others, as `troupe node --device-map` takes them

  /// The address or host name by which others reach the node: `advertise`, else `host`, else the host in `ssh`. Empty if the file
  /// names none, because the node listens on all addresses of this host.
  std::string reached_at() const;
};

/// The nodes of a small cluster, in the order in which they start. All other nodes join the first one.
///   {"nodes": [{"name": "stage1", "port": 4001}, {"name": "stage2", "workers": 2, "threads": 2}]}
///   CF-1  a mistake throws std::runtime_error with the file, the field, what was expected and what the file has.
///   CF-2  nothing is guessed: an unknown field is a mistake. Two nodes with the same name or address are a mistake too.
///   CF-3  a destination of ssh and a program are no options ("-oProxyCommand=...").
///   CF-4  a device map leads to a node of the file, and each of its devices has a name that libtorch knows.
struct cluster_file {
  std::string origin;  // the file's path, for error texts
  std::vector<cluster_node> nodes;

  static cluster_file read(const std::string& path);
  /// `origin` names the file in error texts.
  static cluster_file parse(const std::string& text, const std::string& origin);
};

/// Throws std::runtime_error that names `field` if the name is no valid node name (valid_node_name) or looks like an option.
void check_node_name(const std::string& name, const std::string& field);

}  // namespace troupe::apps
