// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <netinet/in.h>

#include <cstdint>
#include <string>

#include <troupe/actors/support/owned_descriptor.hpp>

namespace troupe::bench {

/// A TCP socket of IPv4 that sends each message at once. Throws std::runtime_error.
support::owned_descriptor new_socket();

/// Throws std::runtime_error if the text is no IPv4 address.
sockaddr_in socket_address(const std::string& address, std::uint16_t port);

/// A connection to this address. Throws std::runtime_error if nobody answers.
support::owned_descriptor connected_socket(const std::string& address, std::uint16_t port);

/// A socket that listens at this address; port 0 is any free one. Throws std::runtime_error if the port is taken.
support::owned_descriptor listening_socket(const std::string& address, std::uint16_t port);
std::uint16_t port_of(const support::owned_descriptor& listening);

/// The next connection. It does not outlive an exec, and sends each message at once.
support::owned_descriptor accepted_socket(const support::owned_descriptor& listening);

}  // namespace troupe::bench
