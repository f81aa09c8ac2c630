// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/support/host_lookup.hpp>

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

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

}  // namespace troupe::support
