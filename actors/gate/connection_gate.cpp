// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/gate/connection_gate.hpp>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <troupe/actors/gate/socket_user.hpp>
#include <troupe/actors/support/machine_address.hpp>

namespace troupe::gate {

namespace {

constexpr auto lets_in = ", which lets everybody in who reaches their ports";

bool is_loopback(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) return ntohl(reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr) >> 24 == 127;
  if (address.ss_family != AF_INET6) return false;
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  return IN6_IS_ADDR_LOOPBACK(&v6) || (IN6_IS_ADDR_V4MAPPED(&v6) && v6.s6_addr[12] == 127);
}

bool read_address(int (*of)(int, sockaddr*, socklen_t*), int socket, sockaddr_storage& to) {
  socklen_t size = sizeof to;
  return of(socket, reinterpret_cast<sockaddr*>(&to), &size) == 0;
}

/// What the kernel says about the other end. If this process made the connection, the other program may not have accepted it
/// yet. Then no process has the socket of the other end, and the report is about the socket that listens.
socket_report report_on_other(const sockaddr_storage& there, const sockaddr_storage& here, end which) {
  const auto other = report_on_socket(there, here);
  if (which == end::called || other.what != socket_report::kind::not_held) return other;
  sockaddr_storage nobody{};
  nobody.ss_family = here.ss_family;
  const auto listens = report_on_socket(there, nobody);
  return listens.what == socket_report::kind::held ? listens : report_on_socket(there, here);
}

}  // namespace

std::optional<refusal> connection_gate::check(int socket, end which) const {
  if (rule_ != rule::same_user) return std::nullopt;
  sockaddr_storage here{};
  sockaddr_storage there{};
  if (!read_address(::getsockname, socket, here) || !read_address(::getpeername, socket, there))
    return refusal{"the other program has ended the connection", true};
  const auto what = "the program at " + support::address_with_port(there);
  if (!is_loopback(here) || !is_loopback(there))
    return refusal{what + " is reached by a network: without certificates a node talks only to programs of its own user on " +
                   "127.0.0.1 and ::1; start both nodes with --certificates, or both with --insecure" + lets_in};
  const auto other = report_on_other(there, here, which);
  if (other.what == socket_report::kind::not_told) return refusal{"the kernel does not say whose " + what + " is"};
  if (other.what == socket_report::kind::not_held || (which == end::called && !other.is_established))
    return refusal{what + " has ended the connection", true};
  const auto own = ::geteuid();
  if (other.user == own) return std::nullopt;
  return refusal{
    what + " runs as user " + std::to_string(other.user) + ", this node as user " + std::to_string(own) +
    ": without certificates nodes of different users do not talk to each other; run both as one user, start both " +
    "with --certificates, or both with --insecure" + lets_in};
}

}  // namespace troupe::gate
