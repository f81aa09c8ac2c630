// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <troupe/actors/node.hpp>
#include <troupe/messages/messages.hpp>

#include "actors/node_processes.hpp"

namespace troupe::test {

[[noreturn]] void wait_to_be_killed();

/// What a process of a nursery does: a node joins the driver's and serves until the process is killed. An error goes to stderr, with
/// the test's name.
void be_node(const char* test, settings options, std::uint16_t driver, const std::function<void(node&)>& add_functions,
             const std::function<void()>& serve = wait_to_be_killed);

/// The driver, which is a node of this process, and nodes in other processes that have joined the driver.
class process_cluster {
 public:
  process_cluster(nursery& processes, settings of_driver, std::vector<std::string> names);
  ~process_cluster();  // kills them
  process_cluster(const process_cluster&) = delete;
  process_cluster& operator=(const process_cluster&) = delete;

  node& driver() noexcept { return driver_; }
  const std::vector<std::string>& names() const noexcept { return names_; }
  pid_t pid(const std::string& name) const { return pids_.at(name); }
  void signal(const std::string& name, int what) const;

  /// Waits until every node knows every other node. Returns the name of a node that does not come up within ten seconds, or an
  /// empty text.
  std::string meet();
  /// The address of the node, as the driver knows it or knew it last.
  member address(const std::string& name);
  /// Whether the driver takes the node for up.
  bool is_up(const std::string& name);

  /// What is still there of contexts, passes and calls after five seconds, as text; empty: nothing. A node that the driver takes for
  /// down is asked from outside.
  std::string left_on_driver();
  std::string left_on(const std::string& name);

  /// Kills the node, waits until the driver knows that the node is down, and starts a node of the same name.
  void replace(const std::string& name);

 private:
  bool knows_all(const std::string& name);
  bool is_up(node_id id);

  nursery& processes_;
  node driver_;
  std::vector<std::string> names_;
  std::map<std::string, pid_t> pids_;
  std::map<std::string, member> addresses_;
};

}  // namespace troupe::test
