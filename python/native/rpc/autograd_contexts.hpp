// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/python/rpc/autograd_test.py
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include <torch/csrc/autograd/variable.h>

#include <troupe/actors/node.hpp>
#include <troupe/actors/passes/guest_pass.hpp>
#include <troupe/actors/passes/open_contexts.hpp>
#include <troupe/actors/support/call_scope.hpp>
#include <troupe/messages/mutex.hpp>

namespace torchtroupe {

/// The contexts of PyTorch's distributed autograd on this worker, each with a context of troupe beside it. PyTorch records the
/// graph: its sends and recvs stay, and its context gets the gradients. The passes are troupe's: a pass takes PyTorch's
/// functions in as those of a guest (passes::guest_pass).
///   UX-1  messages of a context of PyTorch are calls in the context of troupe, so sums have the order of one process, and
///         nodes learn who takes part.
///   UX-2  a pass begins on the worker that opened the context. Another worker that is asked for a pass (RRef.backward) hands
///         the gradients of its roots to a send of its own, and asks the opener for the pass that begins there.
///   UX-3  when PyTorch releases a context on the worker that opened it, the context of troupe is released too, once the
///         requests of this worker in it have ended. With troupe's context the other workers release that of PyTorch. What a
///         late answer makes of a released context is released again.
///   UX-4  the node may end before: then no message leaves, no pass begins, and nothing more is noted. Contexts of other
///         workers that are left are released by release_all().
class autograd_contexts : public std::enable_shared_from_this<autograd_contexts> {
 public:
  using worker_id = std::int16_t;
  /// `own`: the id of this worker. `peer_of`: the node of a worker; none if there is no such worker.
  autograd_contexts(troupe::node& here, worker_id own, std::function<std::optional<troupe::peer>(worker_id)> peer_of);

  autograd_contexts(const autograd_contexts&) = delete;
  autograd_contexts& operator=(const autograd_contexts&) = delete;

  /// The scope for a message of the context. Each scope() that does not throw is followed by one ended().
  std::unique_ptr<troupe::support::call_scope> scope(std::int64_t context, troupe::support::call_bounds bounds);
  /// A request in the context has ended.
  void ended(std::int64_t context);
  /// A message of the context has come, in a call of the context `id` of troupe. Throws troupe::error (unknown_context) if that
  /// context was released meanwhile.
  void joined(std::int64_t context, troupe::context_id id);
  /// The context of PyTorch beside a context of troupe; none if this worker knows of none.
  std::optional<std::int64_t> number_of(troupe::context_id id);
  /// Notes what the calling thread has recorded in the call that it runs.
  void note_recorded(troupe::context_id id) const;

  /// Runs a pass; returns when it has ended. Throws std::runtime_error with the text for PyTorch's users.
  void backward(std::int64_t context, torch::autograd::edge_list roots, torch::autograd::variable_list gradients,
                bool keep_graph);
  /// Serves the question of another worker for a pass (UX-2).
  troupe::future<troupe::done> lead(std::int64_t context, troupe::message_id root, std::vector<at::Tensor> gradients,
                                    bool keep_graph);
  void release(std::int64_t context);
  /// For the node's end: releases the contexts of other workers. The thread may wait for Python.
  void release_all();
  /// A message of the context was served. If the context was released meanwhile, releases what PyTorch has of it since.
  void tidy(std::int64_t context);
  /// Whether the calling thread releases a context of PyTorch.
  static bool& releases_here();

 private:
  struct entry {
    troupe::context_id id;
    std::uint64_t made = 0;  // messages of this context so far, from threads without a place
    std::size_t open = 0;    // requests of this worker that have not ended
    bool is_released = false;
  };
  troupe::passes::open_context open(std::int64_t context);
  troupe::future<troupe::done> start(std::int64_t context, torch::autograd::edge_list roots,
                                     torch::autograd::variable_list gradients, bool keep_graph);
  void ask_opener(std::int64_t context, torch::autograd::edge_list roots, torch::autograd::variable_list gradients,
                  bool keep_graph);
  /// Returns what has to be closed then, without the lock.
  std::optional<troupe::context_id> take_out(std::unordered_map<std::int64_t, entry>::iterator which) TROUPE_REQUIRES(mutex_);
  void close(std::optional<troupe::context_id> which) const;
  std::shared_ptr<void> released_by_drop(std::int64_t context);
  troupe::passes::guest_maker guest_of(std::int64_t context, troupe::context_id id) const;

  const std::shared_ptr<troupe::nodes::node_link> here_;
  const worker_id own_;
  const std::function<std::optional<troupe::peer>(worker_id)> peer_of_;
  troupe::checked_mutex mutex_;
  std::unordered_map<std::int64_t, entry> entries_ TROUPE_GUARDED_BY(mutex_);
};

/// The function of a node that starts a pass for another worker (UX-2).
inline constexpr const char* name_of_lead = "torch.rpc.backward";

/// How many passes run functions on this process now, or were started by it and have not ended.
std::size_t passes_now() noexcept;

}  // namespace torchtroupe
