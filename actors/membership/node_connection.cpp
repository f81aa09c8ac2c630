// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/membership/node_connection.hpp>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <initializer_list>
#include <optional>
#include <string>

#include <caf/actor_cast.hpp>
#include <caf/actor_system.hpp>
#include <caf/io/basp_broker.hpp>
#include <caf/io/middleman.hpp>
#include <caf/node_id.hpp>

#include <troupe/actors/network/shared_multiplexer.hpp>
#include <troupe/actors/settings.hpp>
#include <troupe/actors/support/machine_address.hpp>

namespace troupe::membership {

namespace {

/// The socket of the connection to `other`. The id of CAF's connection handle is the number of the socket. The socket lives as
/// long as CAF's broker knows the connection.
std::optional<int> socket_to(caf::actor_system& system, const caf::node_id& other) {
  if (!system.has_middleman()) return std::nullopt;
  const auto broker = system.middleman().named_broker<caf::io::basp_broker>(caf::atom("BASP"));
  auto* basp = static_cast<caf::io::basp_broker*>(caf::actor_cast<caf::abstract_actor*>(broker));
  const auto found = basp->instance.tbl().lookup_direct(other);
  return found ? std::optional<int>(static_cast<int>(found->id())) : std::nullopt;
}

/// The address of one end of the connection. `read`: getsockname or getpeername.
template <class F>
sockaddr_storage end_of(F read, int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (read(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return {};
  return address;
}

/// The first of the texts that is not empty.
std::string first_of(std::initializer_list<std::string> texts) {
  for (const auto& text : texts)
    if (!text.empty()) return text;
  return {};
}

}  // namespace

// Shuts down the socket itself: CAF's broker would first send all bytes that wait.
void cut_connection(caf::actor_system& system, const caf::node_id& to) {
  if (const auto socket = socket_to(system, to)) ::shutdown(*socket, SHUT_RDWR);
}

const char* transport_to(caf::actor_system& system, const caf::node_id& other) {
  const auto socket = socket_to(system, other);
  if (!socket) return "no network";
  auto* const shared = network::network_of(system);
  return shared != nullptr && shared->facts().process_beyond(*socket) ? "shared memory" : "TCP";
}

std::optional<std::uint64_t> process_beyond(caf::actor_system& system, const caf::node_id& other) {
  const auto socket = socket_to(system, other);
  auto* const shared = network::network_of(system);
  return socket && shared != nullptr ? shared->facts().process_beyond(*socket) : std::nullopt;
}

std::optional<route> route_to(caf::actor_system& system, const caf::node_id& other) {
  const auto socket = socket_to(system, other);
  if (!socket) return std::nullopt;
  const auto here = support::numeric_address(end_of(::getsockname, *socket));
  const auto there = support::numeric_address(end_of(::getpeername, *socket));
  if (here.empty() || there.empty()) return std::nullopt;
  route result{here, {}, there, support::is_of_this_machine(there)};
  const bool by_ipv6 = here.find(':') != std::string::npos;
  if (is_loopback(here))
    result.own = first_of({support::address_for_others(by_ipv6 ? AF_INET6 : AF_INET),
                           by_ipv6 ? support::address_for_others(AF_INET) : std::string{}, here});
  result.own_ipv4 = by_ipv6 ? support::address_for_others(AF_INET) : result.own;
  return result;
}

bool has_heard(caf::actor_system& system, const caf::node_id& from, std::chrono::nanoseconds lately) {
  const auto socket = socket_to(system, from);
  tcp_info info{};
  socklen_t size = sizeof info;
  return socket && ::getsockopt(*socket, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 &&
         std::chrono::milliseconds(info.tcpi_last_data_recv) < lately;
}

}  // namespace troupe::membership
