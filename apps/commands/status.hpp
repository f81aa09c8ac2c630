// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace CLI {
class App;
}

namespace troupe::apps {

/// `troupe status HOST:PORT`: what a node does right now and has done so far.
///   SD-1  it asks from outside: the node's peers do not hear of it.
///   SD-2  it ends by its deadline, with status 1 and one line, where nobody listens, nobody answers or it is no node.
void add_status_command(CLI::App& app);

}  // namespace troupe::apps
