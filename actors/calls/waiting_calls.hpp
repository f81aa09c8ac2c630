// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/calls/waiting_calls_test.cpp
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include <troupe/actors/contracts/jobs.hpp>
#include <troupe/messages/ids.hpp>

namespace troupe::calls {

/// The calls that have come to a node and have not started: they wait for their context, for gradients or for a worker.
///   HW-1  add(), erase(), of() and contains() take a time that grows with the logarithm of the number of calls, and of() with what it
///         finds. So a peer that makes many calls does not slow the other peers.
///   HW-2  of() returns calls in the order in which they arrived. from() returns the calls of each context in that order.
///   QL-1  of one caller at most `limit` bytes wait. A single call is taken whatever its size.
/// Pre: the number, the context and the bytes of a call stay as they are while the call is in here.
class waiting_calls {
 public:
  using call = contracts::incoming_call_ptr;

  explicit waiting_calls(std::uint64_t limit = std::numeric_limits<std::uint64_t>::max()) : limit_(limit) {}

  std::uint64_t limit() const noexcept { return limit_; }
  /// Bytes of the calls of the caller.
  std::uint64_t bytes_of(node_id caller) const {
    const auto found = bytes_.find(caller);
    return found == bytes_.end() ? 0 : found->second;
  }
  /// Whether a call of so many bytes may wait (QL-1).
  bool has_room(node_id caller, std::uint64_t bytes) const {
    const auto waiting = bytes_of(caller);
    return waiting == 0 || (waiting <= limit_ && bytes <= limit_ - waiting);
  }

  void add(const call& which) {
    if (all_.insert(which).second && which->bytes > 0) bytes_[caller_of(which)] += which->bytes;
  }
  /// False if the call is not in here.
  bool erase(const call& which) {
    if (all_.erase(which) == 0) return false;
    if (const auto found = bytes_.find(caller_of(which)); which->bytes > 0 && (found->second -= which->bytes) == 0)
      bytes_.erase(found);
    return true;
  }
  bool contains(const call& which) const { return all_.contains(which); }
  std::size_t size() const noexcept { return all_.size(); }

  /// The calls in a context.
  std::vector<call> of(const context_id& context) const {
    const auto [begin, end] = all_.equal_range(context);
    return {begin, end};
  }
  /// The calls that a node made.
  std::vector<call> from(node_id caller) const {
    std::vector<call> result;
    for (const auto& each : all_)
      if (caller_of(each) == caller) result.push_back(each);
    return result;
  }

 private:
  static node_id caller_of(const call& which) { return which->request.payload.message.node; }

  struct by_context {
    using is_transparent = void;
    static const context_id& context_of(const call& which) { return which->request.payload.context; }
    bool operator()(const call& a, const call& b) const {
      return std::tie(context_of(a), a->number) < std::tie(context_of(b), b->number);
    }
    bool operator()(const call& a, const context_id& b) const { return context_of(a) < b; }
    bool operator()(const context_id& a, const call& b) const { return a < context_of(b); }
  };

  std::uint64_t limit_;
  std::set<call, by_context> all_;
  std::unordered_map<node_id, std::uint64_t> bytes_;
};

}  // namespace troupe::calls
