// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/membership/membership_test.cpp, tests/actors/membership/membership_network_test.cpp
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>

#include <caf/actor_addr.hpp>
#include <caf/actor_control_block.hpp>
#include <caf/result.hpp>
#include <caf/typed_response_promise.hpp>

#include <troupe/actors/membership/greetings.hpp>
#include <troupe/actors/membership/membership_options.hpp>
#include <troupe/actors/support/desk_actor.hpp>

namespace troupe::membership {

class member_desk;

/// Carries out the decisions of `greetings`, by which nodes get to know each other, in the membership actor.
class admission {
 public:
  admission(support::desk_actor self, const membership_options& options, member_desk& members);

  /// The functions that are told about a join: `ended` when it ends, `changed` when its `first` or `seen` has changed.
  struct listener {
    std::function<void(const join_progress&)> ended;
    std::function<void(const join_progress&)> changed = {};  // empty: nobody is told
  };
  /// Begins a join with the node at the address. Returns the number of the join.
  std::uint64_t join(join_progress how, const std::string& host, std::uint16_t port, listener told);
  /// Returns the join with this number; null if it does not run.
  join_progress* find_join(std::uint64_t number) { return greetings_.find_join(number); }
  /// Hands an event to the greetings, and carries out their decisions.
  void take(greeting_event event);
  void answer(const hello& from, const caf::strong_actor_ptr& gateway, caf::typed_response_promise<welcome> promise);
  /// Takes in news that a peer has passed on.
  void hear(const gossip& from);
  /// Says that a gateway, or the connection to it, has ended. Greetings that wait for an answer of this gateway fail. Otherwise
  /// they would wait for nothing, because CAF leaves a request unanswered when the connection is lost.
  void lost(const caf::actor_addr& gateway);

 private:
  struct caller {
    caf::typed_response_promise<welcome> promise;
    std::optional<route> by;
  };

  void carry_out(const member_steps& what);
  void carry_out(const dial_address& what);
  void carry_out(say_hello& what);
  void carry_out(const ask_rival& what);
  void carry_out(const ask_holder& what);
  void carry_out(const begin_pause& what);
  void carry_out(accept_hello& what);
  void carry_out(refuse_hello& what);
  void carry_out(const say_farewell& what);
  void carry_out(introduce& what);
  void carry_out(const join_changed& what);
  void carry_out(const join_ended& what);

  support::desk_actor self_;
  const membership_options& options_;
  member_desk& members_;
  greetings greetings_;
  std::unordered_map<std::uint64_t, caller> callers_;
  std::unordered_map<std::uint64_t, listener> joins_;
  std::map<std::uint64_t, caf::actor_addr> asked_;  // the gateways of greetings that wait for an answer
};

}  // namespace troupe::membership
