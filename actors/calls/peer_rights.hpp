// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/gate/rights_of_roles_test.cpp
#pragma once

#include <string>

#include <caf/actor_control_block.hpp>

#include <troupe/actors/rights/policy.hpp>
#include <troupe/actors/services/uses.hpp>
#include <troupe/messages/messages.hpp>

namespace troupe::membership {

class peer_directory;

}  // namespace troupe::membership

namespace troupe::objects {

class object_store;

}  // namespace troupe::objects

namespace troupe::passes {

class open_contexts;

}  // namespace troupe::passes

namespace troupe::calls {

/// Says what other nodes may do with this node, by the policy and the roles in their certificates. Any thread may use
/// peer_rights.
///   RB-1  without a policy every node may do everything. The node itself may do everything in any case.
///   RB-2  with a policy, a node whose certificate this node does not know may do nothing.
///   RB-3  with certificates a node acts for itself alone: it takes, lends and drops objects in its own name. With a policy it
///         uses only objects that it owns.
///   RB-4  the code says for each type of request which right it needs, or that it needs none. A type of which the code says
///         nothing does not compile.
///   RB-5  with a policy, a request that needs no right may only be in a context in which the caller takes part. So nobody
///         opens a context, or takes part in one, without a right.
class peer_rights {
 public:
  using used_services = uses<with_options, with_self, with_network, with_actors>;

  peer_rights(const used_services& here, const membership::peer_directory& directory, const objects::object_store& objects,
              const passes::open_contexts& contexts)
      : here_(here), directory_(directory), objects_(objects), contexts_(contexts) {}

  /// The rights of the role of node `who`.
  const rights::role_rights& of(node_id who) const;
  /// Why the node refuses the call; empty if the call may run.
  std::string why_not(const call_request& call) const;
  /// Whether the node takes part in the context: the node opened it, its role has the right `all_contexts`, or the record of
  /// the context says so (CR-4). True without a policy.
  bool takes_part(node_id who, const context_id& id) const;
  /// Why `sender`, an actor of another node, may not do what needs `right`; empty if it may. `what`: for the text, as in "look
  /// for actors".
  std::string why_not(const caf::strong_actor_ptr& sender, bool rights::role_rights::*right, const std::string& what) const;

 private:
  template <class T>
  std::string why_not(const call_request& call, const T& what) const;

  const used_services here_;
  const membership::peer_directory& directory_;
  const objects::object_store& objects_;
  const passes::open_contexts& contexts_;
};

}  // namespace troupe::calls
