// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/support/machine_address.hpp>

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <cstring>
#include <memory>

#include <troupe/actors/support/owned_descriptor.hpp>

namespace troupe::support {

namespace {

constexpr std::uint16_t any_port = 9;

socklen_t size_of(int family) { return family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6); }

/// Calls `look` with the addresses of all interfaces that are up, until it returns true. Returns whether it did.
template <class F>
bool any_of_interfaces(F look) {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return false;
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owned(list, ::freeifaddrs);
  for (const auto* each = list; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr || (each->ifa_flags & IFF_UP) == 0) continue;
    const int family = each->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    sockaddr_storage address{};
    std::memcpy(&address, each->ifa_addr, size_of(family));
    if (look(address, (each->ifa_flags & IFF_LOOPBACK) != 0)) return true;
  }
  return false;
}

/// The address of the other end of a connected socket. The family is AF_UNSPEC if the connection is over.
sockaddr_storage other_address_of(int socket) {
  sockaddr_storage other{};
  socklen_t size = sizeof other;
  if (::getpeername(socket, reinterpret_cast<sockaddr*>(&other), &size) != 0) return {};
  return other;
}

bool is_of_link(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET6) return IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
  return (ntohl(reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr) >> 16) == 0xA9FE;  // 169.254.0.0/16
}

/// The address of the interface by which packets to far machines would leave. Connecting a datagram socket sends nothing; the
/// far address is reserved for documentation.
std::string address_of_default_route(int family) {
  sockaddr_storage far{};
  far.ss_family = static_cast<sa_family_t>(family);
  if (family == AF_INET) {
    auto& to = reinterpret_cast<sockaddr_in&>(far);
    to.sin_port = htons(any_port);
    ::inet_pton(AF_INET, "192.0.2.1", &to.sin_addr);
  } else {
    auto& to = reinterpret_cast<sockaddr_in6&>(far);
    to.sin6_port = htons(any_port);
    ::inet_pton(AF_INET6, "2001:db8::1", &to.sin6_addr);
  }
  const owned_descriptor datagrams(::socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  if (!datagrams || ::connect(datagrams.get(), reinterpret_cast<const sockaddr*>(&far), size_of(family)) != 0 ||
      ::getsockname(datagrams.get(), reinterpret_cast<sockaddr*>(&own), &size) != 0)
    return {};
  return numeric_address(own);
}

}  // namespace

std::string numeric_address(const sockaddr_storage& address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address.ss_family == AF_INET)
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(address).sin_addr, text, sizeof text);
  if (address.ss_family != AF_INET6) return text;
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  if (IN6_IS_ADDR_V4MAPPED(&v6))
    ::inet_ntop(AF_INET, &v6.s6_addr[12], text, sizeof text);
  else
    ::inet_ntop(AF_INET6, &v6, text, sizeof text);
  char interface[IF_NAMESIZE] = "";
  const auto scope = reinterpret_cast<const sockaddr_in6&>(address).sin6_scope_id;
  if (scope != 0 && is_of_link(address) && ::if_indextoname(scope, interface) != nullptr)
    return std::string(text) + "%" + interface;
  return text;
}

std::string address_with_port(const sockaddr_storage& address) {
  const auto host = numeric_address(address);
  if (host.empty()) return host;
  const auto port = address.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                                                  : reinterpret_cast<const sockaddr_in&>(address).sin_port;
  return (host.find(':') == std::string::npos ? host : "[" + host + "]") + ":" + std::to_string(ntohs(port));
}

std::string other_end_of(int socket) { return address_with_port(other_address_of(socket)); }

std::string network_of_other_end(int socket) {
  auto other = other_address_of(socket);
  if (other.ss_family == AF_INET6) {
    auto& v6 = reinterpret_cast<sockaddr_in6&>(other).sin6_addr;
    if (!IN6_IS_ADDR_V4MAPPED(&v6)) std::memset(&v6.s6_addr[8], 0, 8);
  }
  return numeric_address(other);
}

std::string other_end_for_text(int socket) {
  const auto known = other_end_of(socket);
  return known.empty() ? "an address that it has left" : known;
}

bool is_of_this_machine(const std::string& numeric) {
  in_addr v4;
  if (::inet_pton(AF_INET, numeric.c_str(), &v4) == 1 && (ntohl(v4.s_addr) >> 24) == 127) return true;  // all of 127.0.0.0/8
  return any_of_interfaces([&](const sockaddr_storage& address, bool) { return numeric_address(address) == numeric; });
}

std::string address_for_others(int family) {
  if (auto found = address_of_default_route(family); !found.empty()) return found;
  std::string found;
  any_of_interfaces([&](const sockaddr_storage& address, bool loopback) {
    if (loopback || address.ss_family != family || is_of_link(address)) return false;
    found = numeric_address(address);
    return true;
  });
  return found;
}

}  // namespace troupe::support
