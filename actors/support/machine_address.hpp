// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/socket.h>

#include <string>

namespace troupe::support {

/// The IP address as numbers, without the port: "10.0.0.1", "fd00::1". An IPv4-mapped IPv6 address (::ffff:10.0.0.1) is given
/// as IPv4. A link-local IPv6 address has its interface: "fe80::1%eth0". Empty for addresses of other families.
std::string numeric_address(const sockaddr_storage& address);

/// The IP address and the port as numbers: "10.0.0.1:4001", "[fd00::1]:4001". Empty for addresses of other families.
std::string address_with_port(const sockaddr_storage& address);
/// The address of the other end of a connected socket, as address_with_port() gives it. Empty if the connection is over.
std::string other_end_of(int socket);
/// As other_end_of(), for the text of an error or of the log: the text says so if the other end has closed the connection.
std::string other_end_for_text(int socket);
/// The network of the other end of a connected socket: its IPv4 address, or the first 64 bits of its IPv6 address, which one
/// host may have to itself ("fd00:0:0:1::"). Empty if the connection is over.
std::string network_of_other_end(int socket);

/// Whether an interface of this machine has the address. Loopback addresses count too.
bool is_of_this_machine(const std::string& numeric);

/// An address of this machine for other machines: that of the default route, else the first address that is neither loopback
/// nor link-local. `family` is AF_INET or AF_INET6. Empty if there is none.
std::string address_for_others(int family);

}  // namespace troupe::support
