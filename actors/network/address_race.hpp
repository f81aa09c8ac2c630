// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <vector>

#include <caf/error.hpp>

#include <troupe/actors/gate/connection_gate.hpp>
#include <troupe/actors/network/address_probe.hpp>
#include <troupe/actors/support/host_lookup.hpp>
#include <troupe/messages/expect.hpp>

namespace troupe::network {

/// The addresses, those of IPv6 and of IPv4 by turns; the first one stays the first.
std::vector<const addrinfo*> by_turns(const addrinfo* all);

/// Looks for a node at all addresses of a host, as RFC 8305 ("Happy Eyeballs") says. Never waits: the caller waits.
///   AR-1  an address is tried `head_start` after the one before it, or at once when one of them has failed. So an address that
///         drops packets costs the others `head_start`.
///   AR-2  the first address at which a node listens is taken. If there is none, the problem that says most is told: a refusal before a
///         connection that ended, and this before an address where nobody listens.
class address_race {
 public:
  using clock = std::chrono::steady_clock;
  using verdict = address_probe::verdict;
  static constexpr std::chrono::milliseconds head_start{250};

  explicit address_race(gate::connection_gate gate) noexcept : gate_(std::move(gate)) {}

  verdict begin(support::host_lookup found, clock::time_point now);
  /// To be called when the socket is ready for the events of its probe.
  verdict go_on(int socket, clock::time_point now);
  /// Begins with the next address, if it is time.
  verdict look(clock::time_point now);
  /// When look() has something to do; clock::time_point::max() if it has nothing.
  clock::time_point next_look() const noexcept { return next_ < order_.size() ? next_at_ : clock::time_point::max(); }

  /// The probes that are undecided.
  const std::vector<std::unique_ptr<address_probe>>& probes() const noexcept { return probes_; }
  /// Where a node listens. Pre: the verdict is `node`.
  address_probe& winner() const noexcept {
    TROUPE_EXPECT(winner_);
    return *winner_;
  }
  /// Why no node was reached. Pre: the verdict is `nobody`.
  caf::error problem() const;

 private:
  verdict begin_next(clock::time_point now);
  verdict take(std::size_t which, verdict how, clock::time_point now);

  gate::connection_gate gate_;
  support::host_lookup found_;
  std::vector<const addrinfo*> order_;  // of `found_`
  std::size_t next_ = 0;
  clock::time_point next_at_;
  std::vector<std::unique_ptr<address_probe>> probes_;
  std::unique_ptr<address_probe> winner_;
  std::unique_ptr<address_probe> loser_;  // the one whose problem says most
};

}  // namespace troupe::network
