// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/apps/launch_command_test.cpp
#pragma once

namespace CLI {
class App;
}

namespace troupe::apps {

/// `troupe launch`: starts the nodes of a cluster file on this host, by ssh on other hosts or by srun, and watches them.
///   LN-1  the table is printed once every node is up. By then all other nodes have joined the first one.
///   LN-2  if a node ends, or is not up in time, the command ends all other nodes and fails. The error names the node and says
///         how it ended.
///   LN-3  SIGTERM, SIGINT and SIGHUP end every node within two seconds, with status 0.
///   LN-4  a node on another host ends with the command too, within node_starter::silence_s: if the command is killed, or the
///         connection to the host is cut.
///   LN-5  the keys of certificates that the command makes are in memory alone: no file has them, however the command ends.
void add_launch_command(CLI::App& app);

}  // namespace troupe::apps
