// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/status_test.cpp
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <caf/make_message.hpp>  // CAF needs this header before result.hpp
#include <caf/result.hpp>

#include <troupe/actors/calls/worker_desk.hpp>
#include <troupe/actors/contracts/membership.hpp>
#include <troupe/actors/nodes/node_services.hpp>
#include <troupe/actors/support/desk_actor.hpp>
#include <troupe/actors/support/open_requests.hpp>

namespace troupe::nodes {

/// The desk of the `gateway` actor that answers questions about the status of the node, and about the actors that it has
/// published.
///   SH-1  the outline of a peer is answered by its deadline: by the peer, or with an error that names the peer and says why.
///   SH-2  an outline lists only members to which the node was connected at some time, and at most 64 to which it can't
///         connect. So the outlines of a large cluster grow only with the number of connections. `members_up` counts all
///         members.
class status_desk {
 public:
  using used_services = uses<with_log, with_self, with_counts, with_directory, with_maps, with_actors,
                             with_deadlines>::and_also<with_objects, with_contexts, with_rights, with_published>;

  status_desk(support::desk_actor self, const used_services& here, const contracts::membership_actor& membership,
              const calls::worker_desk& workers)
      : self_(self), here_(here), membership_(membership), workers_(workers) {}

  caf::result<node_status> own() const;
  caf::result<node_status> outline() const;
  /// Asks a peer for its outline.
  caf::result<node_status> of_peer(node_id who, std::int64_t left_ns);
  caf::result<caf::strong_actor_ptr> find_published(const std::string& name) const;

  void went_down(node_id who);

 private:
  caf::error why_not(bool rights::role_rights::*right = &rights::role_rights::status,
                     const char* what = "ask for the status of this node or of others") const;
  node_status with(std::vector<peer_status> peers) const;
  void ask(node_id who, std::chrono::milliseconds limit, caf::typed_response_promise<node_status> promise);

  support::desk_actor self_;
  const used_services here_;
  const contracts::membership_actor membership_;
  const calls::worker_desk& workers_;
  support::open_requests asked_;  // requests to peers for their outlines
};

}  // namespace troupe::nodes
