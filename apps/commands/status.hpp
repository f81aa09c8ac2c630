// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/apps/status_command_test.cpp
#pragma once

namespace CLI {
class App;
}

namespace troupe::apps {

/// `troupe status HOST:PORT`: shows what a node does now and what it has done so far.
///   SD-1  the command asks from outside the cluster: the node's peers do not notice it.
///   SD-2  the command ends by its deadline, with status 1 and one line, if nobody listens, nobody answers, or the address is
///         not a node's.
///   SD-3  each peer is shown once, in JSON too: one that is gone only if no other of its name or address has come since.
///   SD-4  with --watch, after the first answer, the command goes on when the node does not answer: it says so and asks again.
void add_status_command(CLI::App& app);

}  // namespace troupe::apps
