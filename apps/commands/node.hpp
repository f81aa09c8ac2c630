// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace CLI {
class App;
}

namespace troupe::apps {

/// `troupe node`: a plain node that waits for work until it is told to leave.
///   NC-1  it prints its address (ready_line) once it has joined and every built-in module type can be created there.
///   NC-2  SIGTERM, SIGINT and the end of the peer named by --until-left end it within two seconds, with status 0.
///   NC-3  it says so when it listens where others than this machine can reach it.
void add_node_command(CLI::App& app);

}  // namespace troupe::apps
