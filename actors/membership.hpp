// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include <caf/actor.hpp>
#include <caf/actor_control_block.hpp>
#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/fwd.hpp>
#include <caf/replies_to.hpp>
#include <caf/typed_actor.hpp>
#include <caf/typed_response_promise.hpp>
#include <caf/unit.hpp>

#include <troupe/actors/atoms.hpp>
#include <troupe/actors/member_table.hpp>
#include <troupe/messages/inspect.hpp>
#include <troupe/messages/messages.hpp>

namespace troupe {

/// Local news: a peer is up. `face` is its published `peer` actor.
struct peer_up {
  member who;
  caf::strong_actor_ptr face;
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
  caf::replies_to<join_atom, std::string, std::uint16_t, std::int64_t>::with<member>,  // host, port, deadline in ns
  caf::replies_to<find_atom, std::string, std::int64_t>::with<peer_up>,                // name, deadline in ns
  caf::replies_to<find_atom, node_id, std::int64_t>::with<peer_up>,                    // the same
  caf::replies_to<list_atom>::with<std::vector<member>>, caf::replies_to<hello, caf::strong_actor_ptr>::with<welcome>,
  caf::replies_to<heartbeat>::with<heartbeat_seen>, caf::reacts_to<farewell>,
  caf::reacts_to<subscribe_atom, caf::actor>,                   // gets peer_up (also for those up already) and peer_down
  caf::replies_to<leave_atom, std::string>::with<caf::unit_t>,  // says farewell to all peers
  caf::replies_to<clock_atom, node_id>::with<std::int64_t>>;    // peer's steady clock minus ours, ns

/// The same as its node sees it: told once where it listens (its own face and port), and its own timers.
using membership_host = membership_actor::extend<caf::reacts_to<listen_atom, caf::strong_actor_ptr, std::uint16_t>,
                                                 caf::reacts_to<tick_atom, std::uint64_t>>;

struct membership_options {
  member self;                 // name, id and the host that others reach it at; the port too if `face` is set
  caf::strong_actor_ptr face;  // the node's published `peer`; null: greetings and joins wait until (listen, face, port)
  caf::actor connector;        // answers (connect, host, port, deadline in ns) as a dialer does; null: a dialer of its own
  std::chrono::nanoseconds heartbeat{250'000'000};
  std::chrono::nanoseconds patience{5'000'000'000};  // how long a join tries a port again where nobody listens yet
  std::function<std::int64_t()> clock;               // steady, ns; empty: std::chrono::steady_clock
  std::function<bool(const caf::node_id&, std::chrono::nanoseconds lately)> has_heard;  // empty: that of node_connection.hpp
};

/// One join under way: the first node and, after its welcome, everyone it knows.
struct join_task {
  caf::typed_response_promise<member> promise;
  std::int64_t deadline_ns = 0;
  member first;
  std::set<node_id> met;
  std::size_t open = 0;  // nodes that have not answered
  caf::error failure;
};

struct membership_state {
  struct search {
    std::string name;
    node_id id;  // where no name is given
    std::uint64_t timer = 0;
    caf::typed_response_promise<peer_up> promise;
  };

  static inline const char* name = "membership";
  membership_options options;
  member_table table;
  bool leaving = false;
  std::vector<std::function<void()>> until_listening;
  std::unordered_map<std::uint64_t, std::function<void()>> timers;
  std::uint64_t last_timer = 0;
  std::list<search> searches;
  std::set<std::shared_ptr<join_task>> joins;
  std::vector<caf::actor> subscribers;
};

/// The behaviour for any host: `membership_host::stateful_broker_pointer<membership_state>` in the network thread,
/// `membership_host::stateful_pointer<membership_state>` on the scheduler.
template <class Self>
membership_host::behavior_type make_membership(Self self, membership_options options);

/// Starts one in the network thread where the system has one, else on the scheduler. It ends by an exit message only.
membership_host spawn_membership(caf::actor_system& system, membership_options options);

}  // namespace troupe

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::node_id)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::peer_up)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::peer_down)
