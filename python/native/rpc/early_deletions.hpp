// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/python/rpc/bad_input_test.py
#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <unordered_set>

#include <torch/csrc/distributed/rpc/message.h>
#include <torch/csrc/distributed/rpc/types.h>

#include <troupe/messages/mutex.hpp>

namespace torchtroupe {

/// Deletions of RRefs that came before this worker, the owner, had made the RRef: the request has timed out, and its function
/// works on. PyTorch forgets such a deletion.
///   ED-1  an RRef whose deletion came before is deleted when it is made. Only the last `most` early deletions are remembered:
///         the functions of most others have never begun.
class early_deletions {
 public:
  static constexpr std::size_t most = 65'536;

  /// A request has come, and is not served yet.
  void note(const torch::distributed::rpc::Message& request);
  /// A request was served.
  void carry_out(const torch::distributed::rpc::Message& answer);

 private:
  using fork_id = torch::distributed::rpc::ForkId;

  std::atomic<bool> are_none_{true};
  troupe::checked_mutex mutex_;
  std::unordered_set<fork_id, fork_id::Hash> all_ TROUPE_GUARDED_BY(mutex_);
  std::deque<fork_id> in_order_ TROUPE_GUARDED_BY(mutex_);  // the oldest first
};

}  // namespace torchtroupe
