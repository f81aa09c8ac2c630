// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <set>
#include <unordered_map>
#include <utility>

#include <caf/actor_control_block.hpp>
#include <caf/error.hpp>
#include <caf/make_message.hpp>
#include <caf/message.hpp>
#include <caf/message_id.hpp>

#include <troupe/messages/ids.hpp>

namespace troupe::support {

/// Ends a request of the actor as if the answer were the error `why`. (CAF keeps the handlers of a request until the answer
/// comes, with all that they hold. A node that went down never answers.)
inline void end_request(caf::actor_control_block* actor, caf::message_id which, caf::error why) {
  actor->enqueue(nullptr, which, caf::make_message(std::move(why)), nullptr);
}

/// The unanswered requests of an actor, by the node that was asked. When a node goes down the actor ends the requests to it.
class open_requests {
 public:
  void add(node_id to, caf::message_id which) { open_[to].insert(which); }

  /// Removes a request that was answered. False if take() has removed the request before.
  bool answered(node_id by, caf::message_id which) {
    const auto found = open_.find(by);
    if (found == open_.end() || found->second.erase(which) == 0) return false;
    if (found->second.empty()) open_.erase(found);
    return true;
  }

  std::set<caf::message_id> take(node_id to) {
    auto all = open_.extract(to);
    return all ? std::move(all.mapped()) : std::set<caf::message_id>{};
  }

  /// Ends the requests of the actor to a node that went down (see end_request).
  void fail(caf::actor_control_block* actor, node_id to, const caf::error& why) {
    for (const auto which : take(to)) end_request(actor, which, why);
  }

  bool empty() const noexcept { return open_.empty(); }

 private:
  std::unordered_map<node_id, std::set<caf::message_id>> open_;
};

}  // namespace troupe::support
