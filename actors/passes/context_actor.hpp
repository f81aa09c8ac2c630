// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/orderings_test.cpp, tests/actors/gathering_test.cpp, tests/actors/support/shared_life_test.cpp
#pragma once

#include <functional>
#include <vector>

#include <caf/error.hpp>
#include <caf/typed_response_promise.hpp>

#include <troupe/actors/contracts/context.hpp>
#include <troupe/actors/contracts/graph_task.hpp>
#include <troupe/actors/gate/known_peers.hpp>
#include <troupe/actors/passes/context_record.hpp>
#include <troupe/actors/passes/pass_services.hpp>
#include <troupe/actors/support/deadline_clock.hpp>
#include <troupe/actors/support/desk_actor.hpp>

namespace troupe::passes {

/// The handlers of a context actor: gathers the gradients of completed passes, starts passes, releases the context.
class context_desk {
 public:
  /// `here` has to outlive the desk. All contexts of a node share one `here`, because a node may have many contexts.
  context_desk(support::desk_actor self, const context_services* here, contracts::context_record_ptr record);
  ~context_desk();
  context_desk(const context_desk&) = delete;
  context_desk& operator=(const context_desk&) = delete;

  using promise = caf::typed_response_promise<contracts::gradients_ptr>;

  void backward(const contracts::backward_job_ptr& job);
  promise promise_gradients();
  promise promise_gradients_after(const contracts::pass_history& known);
  void fulfil(contracts::gradients_wish_ptr wish);
  void release();

 private:
  /// The gradients of all completed passes, or why they could not be gathered.
  struct gathering {
    contracts::gradients_ptr all;
    caf::error failure;
  };
  using reader = std::function<void(const gathering&)>;

  void with_gradients(reader next);
  void gather();
  void merge(const contracts::table_ptr& table);
  void lose(const caf::error& reason);

  support::desk_actor self_;
  const context_services& here_;  // shared by all contexts of the node
  contracts::context_record_ptr record_;
  gate::own_actors::hold guard_;       // other nodes can send this actor only answers
  contracts::gradients_ptr gathered_;  // gradients of completed passes; null: none
  bool merging_ = false;
  support::deadline_clock::alarm expiry_;  // deadline of the request that the merge waits for
  caf::error lost_;                        // why gradients of a completed pass are lost
  std::vector<reader> readers_;            // requests that wait for the merge
};

/// Spawns the actor of a context: a broker in the network threads. `here` has to outlive the actor.
contracts::context_actor spawn_context(const context_services* here, contracts::context_record_ptr record);

}  // namespace troupe::passes
