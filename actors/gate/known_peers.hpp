// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/gate/forged_senders_test.cpp, tests/actors/network/peer_messages_test.cpp, tests/actors/network/message_rules_test.cpp
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include <caf/fwd.hpp>

#include <troupe/actors/certificates/identity.hpp>
#include <troupe/actors/gate/introduced_nodes.hpp>
#include <troupe/actors/gate/node_ids.hpp>
#include <troupe/actors/rights/policy.hpp>
#include <troupe/messages/expect.hpp>
#include <troupe/messages/ids.hpp>
#include <troupe/messages/mutex.hpp>

namespace troupe::gate {

/// Stores which actors a node is made of. Other nodes know the numbers of some of them. CAF delivers every message to such a
/// number, even a message that ends the actor. Actors of a user's program are not among them. Any thread may use it.
///   OA-1  find() finds an actor as long as its `hold` lives. A gateway is found for ever, because other nodes send to it until
///         they have heard that the node has stopped.
///   OA-2  actors that were made before add_first() are `inner`.
class own_actors : public std::enable_shared_from_this<own_actors> {
 public:
  /// `gateway`: receives the messages of other nodes. `inner`: receives only answers from other nodes.
  enum class kind { gateway, inner };
  /// While a hold lives, its actor counts as one of the node's own. A node may have many such actors, so a hold allocates no
  /// memory.
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
  /// Says that all actors with numbers up to `last` are `inner`, except the actors that add() has named. CAF numbers actors in
  /// the order in which they are made, and makes its own actors first.
  void add_first(caf::actor_id last);
  std::optional<kind> find(caf::actor_id actor) const;

 private:
  mutable checked_mutex mutex_;
  std::unordered_map<caf::actor_id, kind> all_ TROUPE_GUARDED_BY(mutex_);
  caf::actor_id last_of_first_ TROUPE_GUARDED_BY(mutex_) = 0;
};

/// What all connections of one network share: who the other nodes are, and the actors that this node is made of. Any thread may
/// use it.
struct known_peers {
  /// Registers the ids of this node, so that no other node can take them. Pre: no connection has been made.
  void introduce_self(const certificates::identity& who, node_id own_node, const caf::node_id& process) {
    TROUPE_EXPECT(own_id == nullptr);
    introduced->introduce(who, own_node);
    introduced->accept(own_node);
    own_id = ids->take(bytes_of(process), who);
  }

  /// The nodes that have introduced themselves by connections with certificates.
  std::shared_ptr<introduced_nodes> introduced = std::make_shared<introduced_nodes>();
  /// The actor systems that are connected with certificates.
  std::shared_ptr<node_ids> ids = std::make_shared<node_ids>();
  std::shared_ptr<own_actors> own = std::make_shared<own_actors>();
  /// What the roles of the cluster may do with this node; null: the node has no policy.
  std::shared_ptr<const rights::policy_file> policy = nullptr;
  node_ids::hold own_id = nullptr;  // with certificates
};

}  // namespace troupe::gate
