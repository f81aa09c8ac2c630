// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/nodes/gateway_actor_test.cpp, tests/actors/returning_peers_test.cpp, tests/actors/gate/forged_senders_test.cpp
#pragma once

#include <functional>
#include <utility>

#include <caf/result.hpp>

#include <troupe/actors/contracts/gateway.hpp>
#include <troupe/actors/nodes/node_services.hpp>
#include <troupe/actors/passes/routing_desk.hpp>
#include <troupe/actors/services/note_refusal.hpp>
#include <troupe/actors/support/desk_actor.hpp>
#include <troupe/messages/caf_error.hpp>

namespace troupe::nodes {

/// The desk of the `gateway` actor for news of members, and for messages of other nodes to the membership.
class news_desk {
 public:
  using used_services = uses<with_log, with_self, with_counts, with_directory, with_maps, with_outbox,
                             with_garbage>::and_also<with_objects, with_news>;

  /// `on_down`: called when a peer went down, after the directory has noted that.
  news_desk(support::desk_actor self, const used_services& here, const contracts::membership_actor& membership,
            passes::routing_desk& contexts, std::function<void(const contracts::peer_down&)> on_down)
      : self_(self), here_(here), membership_(membership), contexts_(contexts), on_down_(std::move(on_down)) {}

  caf::result<welcome> greet(hello& greeting, caf::strong_actor_ptr& gateway);
  /// Hands a message of another node to the membership, which answers with an `Answer`.
  template <class Answer, class... Values>
  caf::result<Answer> pass_on(Values&&... message) {
    if (membership_) return self_->delegate(membership_, std::forward<Values>(message)...);
    return make_error(errc::misuse, "node '" + here_.self.name() + "' has no network and no membership");
  }

  void is_up(contracts::peer_up& news);
  void went_down(const contracts::peer_down& news);
  /// Handles the news that other nodes consider a member up or down. This node is not connected to the member.
  void heard(const contracts::member_heard& news);
  /// Handles the message of a peer that considers this node up again. The message lists the objects of this node that the peer
  /// still owns. settle() ends the ownership of the peer in all other objects, because its calls to drop them were lost. If
  /// this node still considers the peer unreachable, is_up() later announces the contexts once more.
  void settle(const held_objects& news);

 private:
  void tell_gone(const member& who, const std::string& reason) const;

  support::desk_actor self_;
  const used_services here_;
  const contracts::membership_actor membership_;
  passes::routing_desk& contexts_;
  const std::function<void(const contracts::peer_down&)> on_down_;
};

}  // namespace troupe::nodes
