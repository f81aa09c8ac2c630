// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>

#include <caf/actor.hpp>
#include <caf/actor_control_block.hpp>
#include <caf/node_id.hpp>

#include <troupe/actors/gate/known_peers.hpp>
#include <troupe/actors/logging/node_log.hpp>
#include <troupe/actors/membership/greetings.hpp>
#include <troupe/actors/membership/route.hpp>
#include <troupe/messages/messages.hpp>

namespace troupe::membership {

struct membership_options : greeting_settings {
  member self;                          // name, id and host of this node; the port too if `gateway` is set
  caf::strong_actor_ptr gateway;        // actor `gateway`; null: greetings and joins wait for (listen, gateway, port)
  caf::actor connector;                 // answers (connect, host, port, deadline in ns) like a dialer; null: spawns a dialer
  std::function<std::int64_t()> clock;  // steady, ns; empty: std::chrono::steady_clock
  std::function<bool(const caf::node_id&, std::chrono::nanoseconds lately)> has_heard;  // empty: as in node_connection.hpp
  std::function<std::optional<route>(const caf::node_id&)> route_to;                    // empty: as in node_connection.hpp
  std::function<bool(node_id)> shares;  // whether this node shares work with a peer (MT-4); empty: with every peer
  std::function<gate::own_actors::hold(caf::actor_id)> guard;  // keeps other nodes from sending to the dialer; may be empty
  logging::node_log log;
};

}  // namespace troupe::membership
