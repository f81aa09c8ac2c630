// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/apps/node_command_test.cpp
#pragma once

namespace CLI {
class App;
}

namespace troupe::apps {

/// `troupe node`: a plain node that waits for work until it is told to leave.
///   NC-1  the node prints its address (ready_line) once it has joined and can create every built-in module type.
///   NC-2  SIGTERM, SIGINT and the end of the peer named by --until-left end the node within two seconds, with status 0.
///   NC-3  the node prints a warning if it listens on an address that other machines can reach.
///   NC-4  SIGHUP makes the node read its policy and its certificates again, and open its log file again, also while it joins.
void add_node_command(CLI::App& app);

}  // namespace troupe::apps
