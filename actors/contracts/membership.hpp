// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/membership/membership_test.cpp
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

/// News of this node: a peer is up. `gateway` is the `gateway` actor of the peer.
struct peer_up {
  member who;
  caf::strong_actor_ptr gateway;
  bool again = false;        // whether the peer was unreachable before, not gone
  std::uint64_t period = 0;  // rises with every news that a peer is up; see peer_down
};

/// News of this node: a peer is unreachable or gone. Calls and passes with the peer fail in both cases.
struct peer_down {
  member who;
  std::string reason;
  bool is_gone = true;       // false: the peer is unreachable; its objects and contexts stay
  std::uint64_t period = 0;  // the period of the peer_up before this news
};

/// News of this node about a member to which it is not connected: other nodes say that the member is up or down. A find of the
/// member (find_atom) connects this node to the member.
struct member_heard {
  member who;
  bool is_up = true;
  std::string reason;    // why the member is not up
  bool is_gone = false;  // whether the member is gone or has left; otherwise it may come back
};

/// News of this node: it can't connect to a member, which other nodes may reach.
struct member_out_of_reach {
  member who;
  std::string reason;  // empty: this node can connect to the member again
};

/// Knows the peers, greets new peers, and tells its subscribers which peers are up or down. Messages give a deadline as the
/// time that is left. As long as this node runs, the actor dials each seed to which the node is not connected. A join tries
/// again until its deadline, unless it fails earlier (ME-3).
///   ME-1  the first news of a peer is that it is up. After that the news alternate: unreachable, up again, unreachable, ...
///         The last news is that the peer is gone. (A node of the same name that comes later is another peer.)
///   ME-2  a peer is unreachable when its connection is lost. A peer is also unreachable when it answers no heartbeat for three
///         intervals and sends no other bytes by TCP for two intervals. After `member_table::most_misses` heartbeats in a row
///         without an answer, a peer is unreachable in any case.
///   ME-3  every join and find is answered by its deadline; a find connects this node to the member. A join fails at once if
///         another program answers, or if the node refuses with a reason. A join fails after membership_options::patience if no
///         program listens.
///   ME-4  a name belongs to one node that is up or unreachable; a second node of this name is refused. A second node at the
///         address of the first node counts as the first node restarted: it gets the name.
///   ME-5  two nodes that reach each other again are up for each other again, without being asked and however long they were
///         separated. Before that, both have failed all calls and passes between them. Either both nodes have dropped the
///         objects and contexts of the other node, or neither has (see `bond`).
///   ME-6  a join of seeds is answered once this node is connected to one of them. A node that is one of its own seeds does not
///         wait for seeds that do not answer: then the answer is the node itself. If the join fails, at its deadline or because
///         all seeds refuse, the error says what happened at each seed.
using membership_actor = caf::typed_actor<
  caf::replies_to<support::join_atom, std::string, std::uint16_t, std::int64_t>::with<member>,  // host, port, deadline in ns
  caf::replies_to<support::join_atom, std::vector<std::string>, std::int64_t>::with<member>,  // seeds, ns to wait (0: for ever)
  caf::replies_to<support::find_atom, std::string, std::int64_t>::with<peer_up>,              // name, deadline in ns
  caf::replies_to<support::find_atom, node_id, std::int64_t>::with<peer_up>,                  // id, deadline in ns
  caf::replies_to<support::list_atom>::with<std::vector<member>>, caf::replies_to<hello, caf::strong_actor_ptr>::with<welcome>,
  caf::replies_to<heartbeat>::with<heartbeat_seen>, caf::reacts_to<farewell>, caf::reacts_to<gossip>,
  // the subscriber gets peer_up and member_heard (at once for members that are up already), peer_down and member_out_of_reach
  caf::reacts_to<support::subscribe_atom, caf::actor>,
  caf::replies_to<support::leave_atom, std::string>::with<caf::unit_t>,  // says farewell to all peers
  caf::replies_to<support::clock_atom, node_id>::with<std::int64_t>>;    // peer's steady clock minus this node's, ns

/// The interface of membership_actor for its own node. The node sends its gateway and port once; tick is the timer of the
/// membership actor.
using membership_host = membership_actor::extend<caf::reacts_to<support::listen_atom, caf::strong_actor_ptr, std::uint16_t>,
                                                 caf::reacts_to<support::tick_atom, std::uint64_t>>;

}  // namespace troupe::contracts

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::node_id)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::contracts::peer_up)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::contracts::peer_down)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::contracts::member_heard)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::contracts::member_out_of_reach)
