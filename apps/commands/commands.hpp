// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/apps/cli_test.cpp
#pragma once

namespace CLI {
class App;
}

// The subcommands of the program `troupe`. Each source of this folder has one or two subcommands.
namespace troupe::apps {

/// `troupe train`: trains a character-level language model whose layers are spread over node processes.
///   TC-1  status 0: trained; 1: failed; 2: wrong arguments; 128 + a signal's number: stopped by the signal, with a
///         checkpoint.
void add_train_command(CLI::App& app);

/// `troupe generate`: text from a checkpoint of `troupe train`, in this process alone.
void add_generate_command(CLI::App& app);

/// `troupe node`: a plain node that waits for work until it is told to leave.
///   NC-1  the node prints its address (ready_line) once it has joined. By then it has the functions and modules of all
///         libraries that its command line names, and no others.
///   NC-2  SIGTERM, SIGINT and the end of the peer named by --until-left end the node within two seconds, with status 0.
///   NC-3  the node prints a warning if it listens on an address that other machines can reach.
///   NC-4  SIGHUP makes the node read its policy and its certificates again, and open its log file again, also while it joins.
void add_node_command(CLI::App& app);

/// `troupe launch`: starts the nodes of a cluster file on this host, by ssh on other hosts or by srun, and watches them.
///   LN-1  the table is printed once every node is up. By then all other nodes have joined the first one.
///   LN-2  if a node ends, or is not up in time, the command ends all other nodes and fails. The error names the node and says
///         how it ended.
///   LN-3  SIGTERM, SIGINT and SIGHUP end every node within two seconds, with status 0.
///   LN-4  a node on another host also ends, within node_starter::silence_s seconds, if the command is killed or the connection
///         to the host is cut.
///   LN-5  the keys of certificates that the command makes are in memory alone: no file has them, however the command ends.
void add_launch_command(CLI::App& app);

/// `troupe status HOST:PORT`: shows what a node does now and what it has done so far.
///   SD-1  the command asks from outside the cluster: the node's peers do not notice it.
///   SD-2  the command ends by its deadline, with status 1 and one line, if nobody listens, nobody answers, or the address is
///         not a node's.
///   SD-3  each peer is shown once, in JSON too. A peer that is gone is shown only if no other peer of its name or address has
///         come since.
///   SD-4  with --watch, after the first answer, a node that does not answer does not end the command: the command says so and
///         asks again.
void add_status_command(CLI::App& app);

/// `troupe bench --cluster FILE` or `--join HOST:PORT`: measures the nodes of a running cluster and the ways between them, one
/// after the other. The nodes have to have the probe (`troupe node --load probe`).
///   BM-1  a node or way that can't be measured is shown with the reason. The others are measured, and the exit status is 1.
///   BM-2  with --join, nodes without the probe are left out, and shown with what to do. If no node has it, the exit status
///         is 1.
void add_bench_command(CLI::App& app);

/// Adds `troupe certs`: makes, renews, revokes and shows the certificates with which the nodes of a cluster prove who they are.
void add_certs_command(CLI::App& app);

/// Adds the command split-learning to `app`: two parties who do not trust each other train one model.
void add_split_learning_command(CLI::App& app);

/// Adds `troupe export` and `troupe import`: the weights of a checkpoint as one file of tensors, and back (apps/weights.hpp).
void add_weights_commands(CLI::App& app);

}  // namespace troupe::apps
