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
#include <caf/error.hpp>
#include <caf/typed_response_promise.hpp>

#include <troupe/actors/contracts/membership.hpp>
#include <troupe/actors/logging/node_log.hpp>
#include <troupe/actors/membership/member_table.hpp>
#include <troupe/messages/messages.hpp>

namespace troupe::membership {

struct membership_options {
  member self;                    // name, id and the host that others reach it at; the port too if `gateway` is set
  caf::strong_actor_ptr gateway;  // the node's `gateway` actor; null: greetings and joins wait until (listen, gateway, port)
  caf::actor connector;           // answers (connect, host, port, deadline in ns) as a dialer does; null: a dialer of its own
  std::chrono::nanoseconds heartbeat{250'000'000};
  std::chrono::nanoseconds patience{5'000'000'000};  // how long a join tries a port again where nobody listens yet
  std::function<std::int64_t()> clock;               // steady, ns; empty: std::chrono::steady_clock
  std::function<bool(const caf::node_id&, std::chrono::nanoseconds lately)> has_heard;  // empty: that of node_connection.hpp
  logging::node_log log;
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
    caf::typed_response_promise<contracts::peer_up> promise;
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

}  // namespace troupe::membership
