// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include <caf/actor.hpp>
#include <caf/actor_control_block.hpp>
#include <caf/error.hpp>
#include <caf/typed_response_promise.hpp>

#include <troupe/actors/contracts/membership.hpp>
#include <troupe/actors/logging/node_log.hpp>
#include <troupe/actors/membership/member_table.hpp>
#include <troupe/actors/membership/route.hpp>
#include <troupe/actors/network/own_actors.hpp>
#include <troupe/messages/messages.hpp>

namespace troupe::membership {

struct membership_options {
  member self;                    // name, id and host of this node; the port too if `gateway` is set
  caf::strong_actor_ptr gateway;  // `gateway` actor; null: greetings and joins wait for (listen, gateway, port)
  caf::actor connector;           // answers (connect, host, port, deadline in ns) like a dialer; null: spawns a dialer
  std::chrono::nanoseconds heartbeat{250'000'000};
  std::chrono::nanoseconds forget_after{30'000'000'000};
  std::chrono::nanoseconds patience{5'000'000'000};  // how long a join retries an address where no program listens yet
  std::function<std::int64_t()> clock;               // steady, ns; empty: std::chrono::steady_clock
  std::function<bool(const caf::node_id&, std::chrono::nanoseconds lately)> has_heard;  // empty: node_connection.hpp's
  std::function<std::optional<route>(const caf::node_id&)> route_to;                    // the same
  std::function<bool(node_id)> shares;  // whether this node shares work with a peer (MT-4); empty: with every peer
  std::function<network::own_actors::hold(caf::actor_id)>
    guard;  // keeps others from sending to the dialer; empty: nothing does
  std::function<bool(node_id)>
    accept;  // told before a node becomes a member. False: another process of its name has greeted since;
             // empty: nobody is told
  std::function<bool(node_id)> believes;  // whether news of this peer about others count; empty: those of every peer do
  logging::node_log log;
};

/// A join that runs: it greets the first node, then all nodes that the first node knows.
struct join_task {
  caf::typed_response_promise<member> promise;
  std::int64_t deadline_ns = 0;
  member first;             // the node that the user named, once it has taken this node in
  std::int64_t met_ns = 0;  // since when
  std::size_t open = 0;     // number of nodes that have not answered
  caf::error failure;
  bool is_itself = false;       // whether the address leads to this node
  bool is_patient = false;      // whether an address where no program listens is tried until the deadline
  caf::error seen;              // what stood in the way last, until the first node answers
  std::function<void()> tells;  // called when `seen` or `first` has changed; empty: nobody is told
  std::function<void()> ends;   // called instead of the promise
  std::chrono::nanoseconds longest_pause{1'000'000'000};  // between two tries of the first node
};

/// A node that this node was told to join at its start.
struct seed {
  std::string host;
  std::uint16_t port = 0;
  std::shared_ptr<join_task> task = nullptr;  // while the address is dialled
  member met = {};                            // the node that answered there last
  bool is_itself = false;
  bool has_refused = false;
  caf::error seen = {};      // what stood in the way last
  std::int64_t dial_ns = 0;  // when a seed that has refused is dialled next

  bool is_tried() const noexcept { return is_itself || seen; }
};

struct membership_state {
  struct search {
    std::string name;
    node_id id;  // used if `name` is empty
    std::int64_t until_ns = 0;
    std::uint64_t timer = 0;
    caf::typed_response_promise<contracts::peer_up> promise;
  };

  /// A greeting that waits for its answer.
  struct greeting {
    caf::actor_addr gateway;
    std::function<void()> on_lost;  // to be called once, if the connection is lost
  };

  /// The request that waits for a seed.
  struct start {
    caf::typed_response_promise<member> promise;
    std::int64_t begun_ns = 0;
    std::int64_t until_ns = 0;
  };

  static inline const char* name = "membership";
  membership_options options;
  member_table table;
  bool leaving = false;
  std::vector<std::function<void()>> until_listening;
  std::unordered_map<std::uint64_t, std::function<void()>> timers;
  std::uint64_t last_timer = 0;
  std::list<search> searches;
  std::map<std::uint64_t, greeting> greetings;
  std::uint64_t last_greeting = 0;
  std::set<std::shared_ptr<join_task>> joins;
  std::vector<seed> seeds;
  start starting;
  std::vector<caf::actor> subscribers;
  network::own_actors::hold dialer_guard;  // see membership_options::guard
};

}  // namespace troupe::membership
