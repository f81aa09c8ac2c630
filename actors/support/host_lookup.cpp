// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/support/host_lookup.hpp>

#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include <troupe/actors/settings.hpp>
#include <troupe/actors/support/machine_address.hpp>

namespace troupe::support {

host_lookup look_up(const std::string& host, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int problem = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  host_lookup result;
  if (problem == 0) {
    result.addresses.reset(found);
    return result;
  }
  const std::string why = problem == EAI_SYSTEM ? std::strerror(errno) : gai_strerror(problem);
  result.problem = "the host name '" + host + "' has no address (" + why + "); is it spelled right?";
  result.temporary = problem == EAI_AGAIN;
  return result;
}

std::optional<host_lookup> read_address(const std::string& text, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST;
  addrinfo* found = nullptr;
  if (getaddrinfo(text.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) return std::nullopt;
  host_lookup result;
  result.addresses.reset(found);
  return result;
}

std::string only_loopback(const std::string& host) {
  const auto found = look_up(host, 0);
  std::string first;
  for (const auto* each = found.addresses.get(); each != nullptr; each = each->ai_next) {
    sockaddr_storage address{};
    std::memcpy(&address, each->ai_addr, each->ai_addrlen);
    auto text = numeric_address(address);
    if (!is_loopback(text)) return {};
    if (first.empty()) first = std::move(text);
  }
  return first;
}

}  // namespace troupe::support
