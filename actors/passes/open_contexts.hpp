// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include <troupe/actors/contracts/context.hpp>
#include <troupe/actors/contracts/jobs.hpp>
#include <troupe/actors/passes/context_record.hpp>
#include <troupe/actors/passes/pass_services.hpp>
#include <troupe/messages/errors.hpp>
#include <troupe/messages/ids.hpp>
#include <troupe/messages/mutex.hpp>

namespace troupe::passes {

/// A context that is open on this node.
struct open_context {
  contracts::context_record_ptr record;
  contracts::context_actor actor;
};

/// The contexts that are open on a node: contexts that the node opened itself, and contexts of other nodes that came with
/// calls. Any thread may use open_contexts.
///   OC-1  a closed context is released once, by a later message to `gateway`: when the network thread has nothing else to do,
///         or within a millisecond.
///   OC-2  after stop() no context is queued for release, and no context is left.
///   OC-3  of one other node at most `most_of_one` contexts are open here. Their records count their graph tasks together
///         (CR-6).
class open_contexts {
 public:
  explicit open_contexts(const context_services& here) : here_(here) {}

  static constexpr std::size_t most_of_one = 65'536;

  /// Opens a context of this node; the `gateway` actor finds the context by find(). Throws troupe::error (stopping) after
  /// stop().
  open_context open();
  /// Makes a context and its actor, but does not add the context: find() does not know it yet.
  open_context make(const context_id& id) const;
  /// Calls join_pass() with the services of this object.
  contracts::graph_task_actor join(const contracts::context_record_ptr& record, pass_number number, bool keep_graph,
                                   bool create_graph) const;
  /// Adds a context of another node; for the `gateway` actor. False after stop(), and if the node has `most_of_one` contexts
  /// here: the context is not added, and the caller drops its handles.
  bool know(const open_context& context);
  /// Drops a context that is released; for the `gateway` actor.
  void forget(const context_id& id);

  /// The open context with this id; empty if there is none.
  open_context find(const context_id& id) const;
  std::vector<open_context> all() const;
  /// The error for a context that is not open on this node, and could not be opened.
  error unknown(const context_id& id) const;

  /// Queues a context for release; the destructor of the user's context calls close().
  void close(const context_id& id);
  /// Releases the closed contexts.
  void release_closed();

  /// Adds the send and the recordings of the joint to the record of its context. If the context is not open on this node, the
  /// `gateway` actor opens the context first.
  void add(contracts::outgoing_joint_ptr joint);

  /// For the node's end: returns the actors of all contexts that are not released yet. The caller ends them.
  std::vector<contracts::context_actor> stop();

 private:
  bool is_full(node_id opener) const TROUPE_REQUIRES(mutex_);
  void erase(std::unordered_map<context_id, open_context>::iterator which) TROUPE_REQUIRES(mutex_);

  const context_services here_;  // the context actors point to it
  std::atomic<std::uint64_t> opened_{0};
  mutable checked_mutex mutex_;
  std::unordered_map<context_id, open_context> open_ TROUPE_GUARDED_BY(mutex_);
  struct share {
    std::size_t contexts = 0;  // in open_
    std::shared_ptr<context_record::task_count> tasks = std::make_shared<context_record::task_count>(0);
  };
  std::unordered_map<node_id, share> open_of_ TROUPE_GUARDED_BY(mutex_);  // by the node that opened the contexts
  std::vector<std::pair<context_id, contracts::context_actor>> closed_ TROUPE_GUARDED_BY(mutex_);
  bool stopped_ TROUPE_GUARDED_BY(mutex_) = false;
};

}  // namespace troupe::passes
