// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <map>
#include <string>

#include <troupe/actors/settings.hpp>

namespace troupe::bench {

/// What a part is told.
struct part_arguments {
  settings node;
  std::map<std::string, std::string> values;

  /// Throws std::runtime_error if there is no such number.
  double number(const std::string& name) const;
  const std::string& text(const std::string& name) const;
};

/// Prints the line of a figure.
void tell(const std::string& name, double value);

/// What runs on hosts, by name. Parts print lines "figure NAME NUMBER"; "ready" is one of these names. Parts throw std::exception
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
///   relay       see delay_relay                                          listen, to, port, ms
///   echo        the other side of `floor`                                listen
///   sizes, rates, late, caf_echo, caf_sizes, caf_rates, caf_late, tcp_sizes: see message_parts.hpp
///   stall, strangers, hostile, drain, pour: see security_parts.hpp
///   weights, gradients: see wire_parts.hpp
///   floor       bare TCP                                                 address, port, runs, bytes, answer -> us, mbit
std::map<std::string, std::function<void(const part_arguments&)>> hosts_parts();

}  // namespace troupe::bench
