// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <caf/actor.hpp>
#include <caf/actor_control_block.hpp>
#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/replies_to.hpp>
#include <caf/typed_actor.hpp>
#include <caf/unit.hpp>

#include <troupe/actors/support/atoms.hpp>
#include <troupe/messages/inspect.hpp>
#include <troupe/messages/messages.hpp>

namespace troupe::contracts {

/// Local news: a peer is up. `gateway` is its `gateway` actor.
struct peer_up {
  member who;
  caf::strong_actor_ptr gateway;
};

/// Local news: a peer went down or left.
struct peer_down {
  member who;
  std::string reason;
};

/// Knows the peers, greets new ones, and tells its subscribers who is up and who is down. Deadlines are the time left.
///   ME-1  a peer is reported down at most once per incarnation, and after it was reported up.
///   ME-2  a peer that answers no heartbeat for three intervals, and from which nothing else came by TCP for two, is down, whether its
///         connection stands or not. One that leaves `member_table::most_misses` in a row unanswered is down whatever else comes.
///   ME-3  every join and find is answered by its deadline.
///   ME-4  a name belongs to one living node; a second one is refused.
using membership_actor = caf::typed_actor<
  caf::replies_to<support::join_atom, std::string, std::uint16_t, std::int64_t>::with<member>,  // host, port, deadline in ns
  caf::replies_to<support::find_atom, std::string, std::int64_t>::with<peer_up>,                // name, deadline in ns
  caf::replies_to<support::find_atom, node_id, std::int64_t>::with<peer_up>,                    // the same
  caf::replies_to<support::list_atom>::with<std::vector<member>>, caf::replies_to<hello, caf::strong_actor_ptr>::with<welcome>,
  caf::replies_to<heartbeat>::with<heartbeat_seen>, caf::reacts_to<farewell>,
  caf::reacts_to<support::subscribe_atom, caf::actor>,  // gets peer_up (also for those up already) and peer_down
  caf::replies_to<support::leave_atom, std::string>::with<caf::unit_t>,  // says farewell to all peers
  caf::replies_to<support::clock_atom, node_id>::with<std::int64_t>>;    // peer's steady clock minus ours, ns

/// The same as its node sees it: told once where it listens (its own gateway and port), and its own timers.
using membership_host = membership_actor::extend<caf::reacts_to<support::listen_atom, caf::strong_actor_ptr, std::uint16_t>,
                                                 caf::reacts_to<support::tick_atom, std::uint64_t>>;

}  // namespace troupe::contracts

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::node_id)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::contracts::peer_up)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::contracts::peer_down)
