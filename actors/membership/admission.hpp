// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/membership/membership_test.cpp, tests/actors/membership/membership_network_test.cpp
#pragma once

#include <cstdint>
#include <string>

#include <troupe/actors/membership/membership_state.hpp>

/// How nodes get to know each other: greet() answers a `hello`, join() sends it. Parts of the membership actor, for any host.
namespace troupe::membership {

/// Answers a greeting: admits the node that greets, or refuses it with a reason. A node may take the name of another node only
/// if that node does not answer (ME-4).
template <class Self>
void greet(Self self, const hello& from, const caf::strong_actor_ptr& gateway, caf::typed_response_promise<welcome> promise);

/// Takes in news that a peer has passed on.
template <class Self>
void hear(Self self, const gossip& from);

/// Connects to host:port, greets the node there and then this node's neighbours in the cluster, and answers the task's promise.
template <class Self>
void join(Self self, const std::shared_ptr<join_task>& task, const std::string& host, std::uint16_t port);

}  // namespace troupe::membership
