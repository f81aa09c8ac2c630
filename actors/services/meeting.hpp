// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/nodes/gateway_actor_test.cpp
#pragma once

#include <chrono>
#include <cstdint>
#include <utility>

#include <caf/error.hpp>
#include <caf/send.hpp>

#include <troupe/actors/contracts/membership.hpp>
#include <troupe/actors/membership/peer_directory.hpp>
#include <troupe/actors/services/node_actors.hpp>
#include <troupe/actors/services/uses.hpp>
#include <troupe/actors/support/atoms.hpp>
#include <troupe/actors/support/desk_actor.hpp>

namespace troupe::services {

/// How long work waits for a node that is not up here. When two nodes meet, or reach each other again, one of them notices
/// first: its messages may come before the other node has noticed. Within a cluster the other node notices within milliseconds.
inline constexpr std::chrono::milliseconds meeting_patience{2000};

/// Waits for `limit` at most until the node is up here, and connects to the node if it is a member. Then calls met(); otherwise
/// calls not_met(error).
template <class F, class G>
void meet(support::desk_actor self, uses<with_directory> here, const contracts::membership_actor& membership, node_id who,
          std::chrono::nanoseconds limit, F met, G not_met) {
  self->request(membership, limit + std::chrono::seconds(1), support::find_atom::value, who, std::int64_t{limit.count()})
    .then(
      [here, met = std::move(met)](contracts::peer_up& news) mutable {
        here.directory.add(news.who, std::move(news.gateway), news.period);
        met();
      },
      std::move(not_met));
}

/// Sends a report about a pass to the node that has begun the pass, once that node is up here (GW-19). Two reports may arrive
/// in the wrong order. The message has no sender, because the other node would make a proxy for a sender.
template <class Report>
void report_to(support::desk_actor self, uses<with_directory, with_actors> here, node_id initiator, Report what) {
  auto send = [here, initiator, what = std::move(what)]() mutable {
    const auto gateway = here.directory.gateway(initiator);
    if (!gateway) return false;
    here.directory.traffic.sent(initiator);
    caf::anon_send(gateway, std::move(what));
    return true;
  };
  if (!send() && here.actors.membership)
    meet(self, here, here.actors.membership, initiator, meeting_patience, std::move(send), [](const caf::error&) {});
}

}  // namespace troupe::services
