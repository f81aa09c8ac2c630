// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/apps/cli_test.cpp
#pragma once

namespace CLI {
class App;
}

// The subcommands of the program `troupe`. Each source of this folder has one or two subcommands.
namespace troupe::apps {

/// Adds `troupe train`, which trains a character-level language model whose layers are spread over node processes.
///   TC-1  the exit status is 0 after a training, 1 after a failure, and 2 for wrong arguments. If a signal stops the training,
///         the run has a checkpoint, and the status is 128 + the signal's number.
void add_train_command(CLI::App& app);

/// Adds `troupe generate`, which writes text from a checkpoint of `troupe train`, in this process alone.
void add_generate_command(CLI::App& app);

/// Adds `troupe node`, which runs a node that waits for work until it is told to leave.
///   NC-1  the node prints its address (ready_line) once it has joined. By then it has the functions and modules of all
///         libraries that its command line names, and no others.
///   NC-2  SIGTERM, SIGINT and the end of the peer named by --until-left end the node within two seconds, with status 0.
///   NC-3  the node prints a warning if it listens on an address that other machines can reach.
///   NC-4  SIGHUP makes the node read its policy and its certificates again and reopen its log file. This also works while the
///         node joins.
void add_node_command(CLI::App& app);

/// Adds `troupe launch`, which starts the nodes of a cluster file and watches them. Nodes start on this host, on other hosts by
/// ssh, or by srun.
///   LN-1  the command prints a table of the nodes once every node is up. By then all other nodes have joined the first one.
///   LN-2  if a node ends, or is not up in time, the command ends all other nodes and fails. The error names the node and says
///         how it ended.
///   LN-3  SIGTERM, SIGINT and SIGHUP end every node within two seconds, with status 0.
///   LN-4  if the command is killed, or the connection to a host is cut, the nodes on other hosts also end, within
///         node_starter::silence_s seconds.
///   LN-5  the keys of the certificates that the command makes are only in memory. No file ever has them, however the command
///         ends.
void add_launch_command(CLI::App& app);

/// Adds `troupe status HOST:PORT`, which shows what a node does now and what it has done so far.
///   SD-1  the command does not join the cluster, so the node's peers do not notice it.
///   SD-2  if nobody listens at the address, nobody answers, or the address is not that of a node, the command ends by its
///         deadline. Its status is then 1, and it prints one line.
///   SD-3  each peer is shown once, in JSON too. A peer that is gone is shown only if no other peer with its name or address
///         has come since.
///   SD-4  with --watch, the command does not end if the node stops answering after its first answer. The command says so and
///         asks again.
void add_status_command(CLI::App& app);

/// Adds `troupe bench --cluster FILE` or `--join HOST:PORT`. It measures, one after the other, the nodes of a running cluster
/// and the ways between them. A way leads from one node to another. The nodes have to have the probe (`troupe node --load
/// probe`).
///   BM-1  a node or way that can't be measured is shown with the reason. The others are measured, and the exit status is 1.
///   BM-2  with --join, nodes without the probe are left out, and shown with what to do. If no node has it, the exit status
///         is 1.
void add_bench_command(CLI::App& app);

/// Adds `troupe certs`, which makes, renews, revokes and shows the certificates with which the nodes of a cluster prove who
/// they are.
void add_certs_command(CLI::App& app);

/// Adds `troupe split-learning`, with which two parties who do not trust each other train one model.
void add_split_learning_command(CLI::App& app);

/// Adds `troupe export`, which writes the weights of a checkpoint to one file of tensors, and `troupe import`, which reads such
/// a file (apps/weights.hpp).
void add_weights_commands(CLI::App& app);

}  // namespace troupe::apps
