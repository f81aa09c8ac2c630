// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include <troupe/actors/contracts/context.hpp>
#include <troupe/actors/contracts/jobs.hpp>
#include <troupe/messages/errors.hpp>
#include <troupe/messages/ids.hpp>

namespace troupe::services {

class node_services;

}  // namespace troupe::services

namespace troupe::passes {

/// A context that is open on this node.
struct open_context {
  contracts::context_record_ptr record;
  contracts::context_actor actor;
};

/// The contexts that are open on a node: those it opened itself, and those of other nodes that calls brought. Any thread may use it.
///   OC-1  a context that was closed is released once, later, by a message to `peer`: when the network thread has nothing else to do,
///         or within a millisecond.
///   OC-2  after stop() nothing is added to what is to be released, and no context is left.
class open_contexts {
 public:
  explicit open_contexts(services::node_services& here) : here_(here) {}

  /// Opens a context of this node; `peer` looks it up.
  open_context open();
  /// `peer` opens contexts of other nodes, and forgets those that are released.
  void know(const open_context& context);
  void forget(const context_id& id);

  /// An open one; empty if there is none.
  open_context find(const context_id& id) const;
  std::vector<open_context> all() const;
  /// What is said of a context that is not open here.
  error unknown(const context_id& id) const;

  /// The user's scope was left.
  void close(const context_id& id);
  /// Releases those that were closed.
  void release_closed();

  /// Tells the joint's context of it, or has `peer` open the context.
  void add(contracts::outgoing_joint_ptr joint);

  /// The node stops: hands out the actors of all contexts that are not released yet, to be ended.
  std::vector<contracts::context_actor> stop();

 private:
  services::node_services& here_;
  std::atomic<std::uint64_t> opened_{0};
  mutable std::mutex mutex_;  // guards what follows
  std::unordered_map<context_id, open_context> open_;
  std::vector<std::pair<context_id, contracts::context_actor>> closed_;
  bool stopped_ = false;
};

}  // namespace troupe::passes
