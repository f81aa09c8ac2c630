// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <troupe/actors/settings.hpp>

namespace troupe::bench {

/// What a process is told.
struct process_arguments {
  settings node;
  std::map<std::string, std::string> values;

  /// Throws std::runtime_error if there is no such number.
  double number(const std::string& name) const;
  const std::string& text(const std::string& name) const;
};

/// Prints the line of a figure.
void tell(const std::string& name, double value);

using processes_by_name = std::map<std::string, std::function<void(const process_arguments&)>>;

/// What runs on hosts, by name. Processes print lines "figure NAME NUMBER"; "ready" is one of these names. Processes throw std::exception
/// if they fail.
///   node        a node with functions for the others; serves until SIGTERM
///   bulk        sends 16 MiB tensors to the node b                       in_flight, seconds     -> mbit, trip_ms
///   calls       small calls to the node b, one after another             count                  -> us, p99_us
///   shapes      a node of a real_cluster; serves until SIGTERM
///   pass        node 0 of a real_cluster, whose others are on h1, h2 ... nodes, port, shape, us, runs -> ms, low, high (quarters)
///   flood       many calls of 1 MiB to a function of b that takes long   count, ms              -> here_mib, there_mib
///   member      one node of many; serves until SIGTERM                   others, patience       -> joined_s, complete_s, known
///   members     many nodes in this process                               count, patience        -> as member, and cpu, threads,
///                                                                                                  descriptors
///   echo        the other side of `floor`                                listen
///   floor       bare TCP                                                 address, port, runs, bytes, answer -> us, mbit
processes_by_name host_processes();

/// Processes that exchange messages with another host: sizes, rates and late with the node b, caf_sizes, caf_rates and caf_late with the process
/// caf_echo, tcp_sizes with the process echo. What is not the node b has `address` and `port`.
///   sizes       bytes there and back, for each of `sizes` ("0,1024"), about `bytes` together -> us_SIZE (the median), low_SIZE and
///               high_SIZE (its quarters), tenth_SIZE, late_SIZE and last_SIZE (all but one of 10, of 100 and of 1,000 keep it)
///   rates       `count` small messages, for each number under way in `at_once` ("1,16") -> per_s_NUMBER (the median), low_NUMBER,
///               high_NUMBER
///   late        `count` messages beside tensors of 16 MiB, which travel "there" or "both_ways" (`load`, or "none") -> us, tenth, late,
///               and mbit of what fills the link; of the node b also mbit_back and downs. `what` "heartbeat" asks for the status, which is
///               answered by the same actors and travels alike. `what` "error" is the time of a pass until its error: see failing_passes.hpp
processes_by_name message_processes();

/// Processes of strangers, and bare connections.
///   stall       `count` connections to `address` and `port`, each with the beginning of a handshake of TLS. A connection that is closed is
///               opened again. "ready" when all have been opened once; runs until it is killed.
///   strangers   `rate` connections a second, each with bytes that no node sends. "ready" after a hundred; runs until it is killed.
///   hostile     `count` hostile inputs in so many `rounds`, with a `kit` (tests/support/hostile_client.hpp) -> played_1 and so on: the
///               connections until the end of a round; messages: how many inputs came after a proof
///   drain, pour loops that only receive (at `listen`) and send (for `seconds`) 16 MiB at a time, by plain TCP or, with a `kit`, by the
///               session of TLS that nodes use. No node and no actor runs -> mbit of drain
processes_by_name security_processes();

/// Processes of compressed tensors.
///   weights     a node with the function "weights", which returns a parameter of 16 MiB; serves until SIGTERM
///   gradients   sends gradients of 16 MiB to the node b: a backward pass from the result of "weights". Passes without compression and in
///               the `format` take turns, `count` of each -> exact_ms, packed_ms: of the pass alone, until its end on both nodes
///   device      a node with a simulated device and the function "take"; serves until SIGTERM
///   from_device sends tensors of so many `bytes` to the node b, of the CPU and of a device in turns, `count` each -> wire_ms, copy_ms: of
///               the copy to the host alone; both_ms
processes_by_name wire_processes();

/// Passes TCP connections on from the host of `listen` to `to` and `port`. Each byte leaves `ms` after it came, in both directions, and the
/// rate has no other limit. Part "relay".
void relay(const process_arguments& with);

/// What fills a link in the process "late" and in the answer of the function "give".
inline constexpr std::int64_t filling_bytes = std::int64_t{16} << 20;

/// How many messages of this size have so many `bytes` together; 5 to 2,000.
int runs_of_size(std::int64_t size, std::int64_t bytes);
/// The figures "sizes" of one size.
std::map<std::string, double> figures_of_size(std::int64_t size, const std::vector<double>& times);

}  // namespace troupe::bench
