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

/// Runs a node in a process of a nursery: makes the node, joins the driver's node at port `driver` of loopback, and calls
/// `serve`. The text of an exception goes to stderr, after the name of the test (`test`).
void be_node(const char* test, settings options, std::uint16_t driver, const std::function<void(node&)>& add_functions,
             const std::function<void()>& serve = wait_to_be_killed);

/// A driver, which is a node of this process, and nodes in other processes. The other nodes join the driver.
class process_cluster {
 public:
  process_cluster(nursery& processes, settings of_driver, std::vector<std::string> names);
  ~process_cluster();  // kills the other processes
  process_cluster(const process_cluster&) = delete;
  process_cluster& operator=(const process_cluster&) = delete;

  node& driver() noexcept { return driver_; }
  const std::vector<std::string>& names() const noexcept { return names_; }
  pid_t pid(const std::string& name) const { return pids_.at(name); }
  void signal(const std::string& name, int what) const;

  /// Waits until every node knows every other node. Returns the name of a node that does not come up within ten seconds, or an
  /// empty text.
  std::string meet();
  /// The id and the address of the node, as the driver knows them or knew them last.
  member address(const std::string& name);
  /// Whether the node is up in the view of the driver.
  bool is_up(const std::string& name);

  /// The status of the node as text, if a context, a pass or a call is left on the node after five seconds; otherwise an empty
  /// text. If the node is down in the view of the driver, a status_client asks the node; if that fails, the result is the text
  /// of the error.
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
