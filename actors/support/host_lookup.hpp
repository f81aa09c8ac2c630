// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/support/host_lookup_test.cpp, tests/actors/support/name_lookups_test.cpp
#pragma once

#include <netdb.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
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

/// The first address, as numbers, if all addresses of the host are loopback; otherwise empty. For example, the /etc/hosts of
/// many hosts gives their own name the address 127.0.1.1. Takes as long as look_up().
std::string only_loopback(const std::string& host);

/// Looks the host name up. The system may ask a name server, so look_up() may take seconds.
host_lookup look_up(const std::string& host, std::uint16_t port);

/// The address that the text stands for, if the text is an address and no name. Never waits.
std::optional<host_lookup> read_address(const std::string& text, std::uint16_t port);

/// Looks host names up on threads of its own, because a look-up may block for seconds. Any thread may use name_lookups.
///   NU-1  at most `most_threads` names are looked up at once. The other names wait in the order in which they came.
///   NU-2  a thread ends when no name waits.
///   NU-3  `done` of a name is called at most once, on a thread of this object, also after the end of this object. `done` must
///         not throw. A name that is given up before its look-up begins is not looked up.
class name_lookups {
 public:
  static constexpr std::size_t most_threads = 4;

  struct outcome {
    host_lookup found;
    std::exception_ptr failure;  // the exception of the look-up, for example if there is no memory
  };
  using ticket = std::uint64_t;

  name_lookups();
  /// Waits for nothing: a look-up that blocks goes on.
  ~name_lookups();
  name_lookups(const name_lookups&) = delete;
  name_lookups& operator=(const name_lookups&) = delete;

  /// Adds a name to look up. Throws std::system_error if the system gives no thread and no look-up thread runs.
  ticket add(std::string host, std::uint16_t port, std::function<void(outcome)> done);
  void give_up(ticket which);

 private:
  struct state;
  static void run(const std::shared_ptr<state>& all);

  std::shared_ptr<state> state_;  // shared with the threads
};

}  // namespace troupe::support
