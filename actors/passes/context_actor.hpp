// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/orderings_test.cpp, tests/actors/gathering_test.cpp, tests/actors/support/shared_life_test.cpp
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include <caf/actor.hpp>
#include <caf/error.hpp>

#include <troupe/actors/contracts/context.hpp>
#include <troupe/actors/network/own_actors.hpp>
#include <troupe/actors/passes/context_record.hpp>
#include <troupe/actors/support/deadline_clock.hpp>

namespace troupe::services {

class node_services;

}  // namespace troupe::services

namespace troupe::passes {

/// The gradients of all completed passes, or why they could not be gathered.
struct gathering {
  contracts::gradients_ptr all;
  caf::error failure;
};

/// What a context actor holds from its first message on.
struct context_work {
  explicit context_work(services::node_services& services) : here(services) {}
  ~context_work();
  context_work(const context_work&) = delete;
  context_work& operator=(const context_work&) = delete;

  services::node_services& here;
  network::own_actors::hold guard;    // other nodes send it nothing but answers
  contracts::gradients_ptr gathered;  // gradients of completed passes; null: none
  bool merging = false;
  support::deadline_clock::alarm expiry;                       // deadline of the request that the merge waits for
  caf::error lost;                                             // why gradients of a completed pass are lost
  std::vector<std::function<void(const gathering&)>> readers;  // requests that wait for the merge
};

/// Most contexts are idle, and a program may have many: what only messages need is made for the first message.
struct context_state {
  static inline const char* name = "context";

  services::node_services* here = nullptr;
  contracts::context_record_ptr record;
  caf::actor gateway;                  // the actor ends with it; null after the first message
  std::unique_ptr<context_work> work;  // null before the first message
};

contracts::context_actor spawn_context(services::node_services& here, contracts::context_record_ptr record);

}  // namespace troupe::passes
