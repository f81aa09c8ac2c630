// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <troupe/messages/messages.hpp>

/// Functions that decide by which addresses nodes reach each other. They open no socket.
namespace troupe::membership {

/// The addresses at the two ends of the connection to another node.
struct route {
  std::string own;              // address of this machine for other machines; loopback if the machine has no other
  std::string own_ipv4;         // as `own`, for a node that listens by IPv4 alone; empty if the machine has no IPv4 address
  std::string other;            // address of the other end
  bool within_machine = false;  // whether the other end is on this machine
};

/// The host under which this node introduces itself to the node at the other end. `host`: the host on which this node listens,
/// or its advertised host. If `host` is a wildcard and `to` is known, the result is the address of this machine.
std::string host_to_tell(const std::string& host, const std::optional<route>& to);

/// The host by which this node reaches the node at the other end, which has told `host` as its own. Never a wildcard, and never
/// an address with a scope, because a scope names an interface of the other host.
std::string host_to_reach(const std::string& host, const std::optional<route>& from);

/// Why a node that greets can't be reached by the nodes here: it is on another machine and told a loopback address. Empty if
/// it can be reached.
std::string unreachable(const member& who, const std::optional<route>& from);

/// Moves those members out of `all` whose addresses mean nothing at the other end: wildcards, and loopback addresses if the
/// other end is on another machine. Returns the members that were moved out.
std::vector<member> take_unreachable(std::vector<member>& all, const std::optional<route>& to);
std::vector<member_news> take_unreachable(std::vector<member_news>& all, const std::optional<route>& to);

}  // namespace troupe::membership
