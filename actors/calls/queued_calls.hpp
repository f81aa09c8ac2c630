// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/calls/queued_calls_test.cpp
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>

#include <troupe/messages/ids.hpp>

namespace troupe::calls {

/// Bytes of the calls of each node that wait here: for their context, for gradients or for a worker. Any thread may use it.
///   QL-1  of one caller at most the limit waits. A single call is taken whatever its size.
class queued_calls {
 public:
  explicit queued_calls(std::uint64_t limit) : all_(std::make_shared<state>()) { all_->limit = limit; }

  std::uint64_t limit() const noexcept { return all_->limit; }

  /// The call waits as long as the result lives. Null: it would wait beyond the limit.
  std::shared_ptr<void> add(node_id caller, std::uint64_t bytes) {
    std::lock_guard lock(all_->mutex);
    auto& waiting = all_->bytes[caller];
    if (waiting > 0 && (waiting > all_->limit || bytes > all_->limit - waiting)) return nullptr;
    waiting += bytes;
    return {all_.get(), [all = all_, caller, bytes](void*) {
              std::lock_guard again(all->mutex);
              const auto found = all->bytes.find(caller);
              if ((found->second -= bytes) == 0) all->bytes.erase(found);
            }};
  }

  std::uint64_t waiting(node_id caller) const {
    std::lock_guard lock(all_->mutex);
    const auto found = all_->bytes.find(caller);
    return found == all_->bytes.end() ? 0 : found->second;
  }

 private:
  struct state {
    std::uint64_t limit = 0;
    std::mutex mutex;  // guards bytes
    std::unordered_map<node_id, std::uint64_t> bytes;
  };

  const std::shared_ptr<state> all_;
};

}  // namespace troupe::calls
