// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/slow_readers_test.cpp
#pragma once

#include <chrono>
#include <string>
#include <utility>

#include <troupe/actors/network/waiting_bytes.hpp>
#include <troupe/actors/nodes/gateway_shell.hpp>
#include <troupe/actors/support/steady_clock.hpp>

namespace troupe::nodes {

/// The handler of the `gateway` actor for wishes for room (GW-15). CAF sends the messages of a user's own actors, so the node can only
/// tell those that send them when to wait.
template <class Self>
struct room_shell : gateway_shell<Self> {
  using base = gateway_shell<Self>;
  using base::base, base::here, base::self;

  static constexpr std::chrono::milliseconds looks_again_after{2};

  void wish(const contracts::room_wish_ptr& what) {
    if (!here.networked() || what->to == here.id()) return what->result.set_value({});
    if (std::exchange(what->has_asked, true)) return look(what);
    // CAF's writer answers after it has written the messages that came before.
    const auto gateway = here.directory().gateway(what->to);
    if (!gateway) return look(what);
    const auto go_on = [s = self, what] { room_shell(s).look(what); };
    self->request(network::message_writer(here.system()), caf::infinite, caf::get_atom::value, gateway.node())
      .then([go_on](const caf::node_id&, const std::string&, std::uint16_t) { go_on(); },
            [go_on](const caf::error&) { go_on(); });
  }

 private:
  void look(const contracts::room_wish_ptr& what) {
    const auto& limit = here.options().send_limit;
    const auto gateway = here.directory().gateway(what->to);
    const auto who = "node '" + here.directory().name(what->to) + "'";
    if (!gateway && here.is_ending())
      return what->result.set_error(error(errc::stopping, "waiting for room: this node has stopped"));
    if (!gateway) return what->result.set_error(error(errc::peer_down, "waiting for room: " + who + " is down"));
    const auto waiting = network::waiting_bytes(here.system(), gateway.node());
    if (waiting < limit) return what->result.set_value({});
    if (support::steady_ns() >= what->until_ns)
      return what->result.set_error(error(errc::deadline_passed, "waiting for room: " + std::to_string(waiting) +
                                                                   " bytes wait to leave for " + who +
                                                                   " (settings::send_limit is " + std::to_string(limit) + ")"));
    base::send_later(looks_again_after, support::room_atom::value, what);
  }
};

template <class Self>
room_shell(Self) -> room_shell<Self>;

}  // namespace troupe::nodes
