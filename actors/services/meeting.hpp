// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/nodes/gateway_actor_test.cpp
#pragma once

#include <chrono>
#include <cstdint>
#include <utility>

#include <caf/error.hpp>

#include <troupe/actors/contracts/membership.hpp>
#include <troupe/actors/services/node_services.hpp>
#include <troupe/actors/support/atoms.hpp>

namespace troupe::services {

/// How long work waits for a node that is not up here. Of two nodes that meet, or that reach each other again, one knows so first:
/// messages of that node may come while it is not up here. The nodes of one cluster know each other within milliseconds.
inline constexpr std::chrono::milliseconds meeting_patience{2000};

/// Waits until the node is up here, within `limit`, and connects to it if it is a member. Then calls met(), or not_met(error).
template <class Self, class F, class G>
void meet(Self self, node_services& here, const contracts::membership_actor& membership, node_id who,
          std::chrono::nanoseconds limit, F met, G not_met) {
  self->request(membership, limit + std::chrono::seconds(1), support::find_atom::value, who, std::int64_t{limit.count()})
    .then(
      [&here, met = std::move(met)](contracts::peer_up& news) mutable {
        here.directory().add(news.who, std::move(news.gateway), news.period);
        met();
      },
      std::move(not_met));
}

}  // namespace troupe::services
