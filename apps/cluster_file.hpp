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
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;   // 0: any free port
  std::size_t workers = 1;  // remote calls that run at once
  std::size_t threads = 1;  // threads of libtorch inside one operation
};

/// The nodes of a small cluster, in the order in which they start. All other nodes join the first one.
///   {"nodes": [{"name": "stage1", "port": 4001}, {"name": "stage2", "workers": 2, "threads": 2}]}
///   CF-1  a mistake throws std::runtime_error with the file, the field, what was expected and what the file has.
///   CF-2  nothing is guessed: an unknown field is a mistake. Two nodes with the same name or address are a mistake too.
struct cluster_file {
  std::vector<cluster_node> nodes;

  static cluster_file read(const std::string& path);
  /// `origin` names the file in error texts.
  static cluster_file parse(const std::string& text, const std::string& origin);
};

/// Throws std::runtime_error that names `field` if the name is no valid node name (valid_node_name) or looks like an option.
void check_node_name(const std::string& name, const std::string& field);

}  // namespace troupe::apps
