// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/socket.h>

#include <string>

namespace troupe::support {

/// The IP address as numbers, without the port: "10.0.0.1", "fd00::1". An IPv4 address that stands in an IPv6 address
/// (::ffff:10.0.0.1) is given as IPv4. Empty for addresses of other families.
std::string numeric_address(const sockaddr_storage& address);

/// Whether an interface of this machine has the address. Loopback addresses count too.
bool is_of_this_machine(const std::string& numeric);

/// An address of this machine for other machines: that of the default route, else that of the first interface with an address
/// beyond loopback and link. `family` is AF_INET or AF_INET6. Empty if there is none.
std::string address_for_others(int family);

}  // namespace troupe::support
