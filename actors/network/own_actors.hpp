// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/network/message_rules_test.cpp, tests/actors/gate/forged_senders_test.cpp
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

#include <caf/fwd.hpp>

namespace troupe::network {

/// The actors that a node is made of. Other nodes know the numbers of some of them, and CAF hands on whatever comes for a number: also a
/// message that ends the actor. Actors of a user's program are not among them. Any thread may use it.
///   OA-1  an actor is found as long as its `hold` lives, and a gateway for good: other nodes send to it until they have heard that the node
///         has stopped.
///   OA-2  actors that were there before add_first() are inner ones.
class own_actors : public std::enable_shared_from_this<own_actors> {
 public:
  /// `gateway`: takes the messages of other nodes. `inner`: other nodes only answer its questions.
  enum class kind { gateway, inner };
  /// Says that an actor is one of the node's own, until its end. A node may have many: a hold takes no memory beside itself.
  class hold {
   public:
    hold() = default;
    hold(std::shared_ptr<own_actors> all, caf::actor_id actor) noexcept : all_(std::move(all)), actor_(actor) {}
    hold(hold&&) noexcept = default;
    hold& operator=(hold other) noexcept;
    ~hold();

   private:
    std::shared_ptr<own_actors> all_;  // null: nothing is held
    caf::actor_id actor_ = 0;
  };

  hold add(caf::actor_id actor, kind what);
  /// All actors up to this one are inner ones, without those that add() has named. CAF numbers actors as they come: its own ones first.
  void add_first(caf::actor_id last);
  std::optional<kind> find(caf::actor_id actor) const;

 private:
  mutable std::mutex mutex_;  // guards the next two
  std::unordered_map<caf::actor_id, kind> all_;
  caf::actor_id last_of_first_ = 0;
};

}  // namespace troupe::network
