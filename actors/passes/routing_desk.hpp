// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/nodes/gateway_actor_test.cpp, tests/actors/contexts_test.cpp, tests/actors/gate/rights_of_roles_test.cpp
#pragma once

#include <functional>
#include <string>

#include <caf/make_message.hpp>  // CAF needs this header before result.hpp
#include <caf/result.hpp>

#include <troupe/actors/contracts/gateway.hpp>
#include <troupe/actors/passes/open_contexts.hpp>
#include <troupe/actors/passes/released_contexts.hpp>
#include <troupe/actors/support/desk_actor.hpp>

namespace troupe::passes {

/// The desk of the `gateway` actor that opens and releases contexts, and that routes the messages of passes to graph tasks.
class routing_desk {
 public:
  using used_services = uses<with_log, with_self, with_counts, with_directory, with_network, with_actors>;

  /// `takes_part`: whether the node may send gradients and reports in a context that is open here. `on_closed`: called when a
  /// context was released.
  routing_desk(support::desk_actor self, const used_services& here, open_contexts& contexts,
               std::function<bool(node_id, const context_id&)> takes_part, std::function<void(const context_id&)> on_closed)
      : self_(self), here_(here), contexts_(contexts), takes_part_(std::move(takes_part)), on_closed_(std::move(on_closed)) {}

  error unknown(const context_id& id) const { return contexts_.unknown(id); }
  /// Returns the open context with this id. If a context of another node is not open here, opens it. `by`: the node that sent
  /// the message which names the context, or the node to which this node sends it. Returns nothing if the context may not be
  /// opened (GW-1, GW-2, GW-5).
  open_context find_or_open(const context_id& id, node_id by);
  void add(contracts::outgoing_joint& joint);

  void gradients(propagate_gradients& message);
  void leave_out(prune& message);
  /// Routes a report about a pass to its graph task. A report never starts a pass.
  template <class Report>
  void report(Report& message);
  caf::result<discovered> walk(discover& question);
  caf::result<pass_aborted> abort(abort_pass& message);

  /// Handles the news that node `from` holds a part of a context. If this node opened the context, `from` may be unknown in the
  /// record, because the node that called `from` went down. If another node opened the context, `from` may be cut off from the
  /// opener. Then this node announces its own part to the opener. With a policy `from` becomes a peer only if
  /// context_members::takes_part() is true for it, or if its role has the right `all_contexts`.
  void joined(const context_joined& news);
  /// Tells the opener of the context that this node holds a part of the context. If the opener has released the context, it
  /// answers with release_context.
  void announce(const context_id& id);
  context_released release(const release_context& message);
  void release(const context_id& id, const contracts::context_actor& actor);

  void went_down(const contracts::peer_down& news);
  /// The node is up again: calls announce() for each context that the node opened and that is open here. The node may have
  /// released such a context meanwhile.
  void is_up_again(node_id who);

 private:
  bool may_take_part(node_id who, const context_id& id) const;
  std::string why_not_from(const propagate_gradients& message);
  template <class Message>
  void to_pass(Message& message, const std::string& sender);
  std::string no_capacity_text(const context_id& id) const;
  template <class Message>
  void say_failed(const Message& message, const std::string& sender, errc code, const std::string& why);
  void refuse(const std::string& why) const;
  contracts::context_actor close(const context_id& id);

  support::desk_actor self_;
  const used_services here_;
  open_contexts& contexts_;
  const std::function<bool(node_id, const context_id&)> takes_part_;
  const std::function<void(const context_id&)> on_closed_;
  released_contexts released_{4096};
};

}  // namespace troupe::passes
