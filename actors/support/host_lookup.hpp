// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <netdb.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace troupe::support {

struct free_addresses {
  void operator()(addrinfo* list) const noexcept { freeaddrinfo(list); }
};

/// The addresses of a host name, or why it has none.
struct host_lookup {
  std::unique_ptr<addrinfo, free_addresses> addresses;
  std::string problem;     // "the host name '...' has no address (...)"
  bool temporary = false;  // whether the look-up may succeed later

  bool failed() const noexcept { return !problem.empty(); }
};

/// The first address, as numbers, if all addresses of the host are loopback; otherwise empty. A host whose name stands for
/// 127.0.1.1 in its own /etc/hosts is such a case. Looks the name up.
std::string only_loopback(const std::string& host);

/// Looks the host name up. The system may ask a name server, so look_up() may take seconds.
host_lookup look_up(const std::string& host, std::uint16_t port);

/// The address that the text stands for, if the text is an address and no name. Never waits.
std::optional<host_lookup> read_address(const std::string& text, std::uint16_t port);

}  // namespace troupe::support
