// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace CLI {
class App;
}

namespace troupe::apps {

/// `troupe launch`: starts the nodes of a cluster file on this machine and watches them.
///   LN-1  the table is printed once every node is up; the others have then joined the first.
///   LN-2  a node that ends, or that is not up in time, ends the others and the command, which names it and says how it ended.
///   LN-3  SIGTERM and SIGINT end every node within two seconds, with status 0.
void add_launch_command(CLI::App& app);

}  // namespace troupe::apps
