// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/calls/waiting_calls_test.cpp
#pragma once

#include <cstddef>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include <troupe/actors/contracts/jobs.hpp>
#include <troupe/messages/ids.hpp>

namespace troupe::calls {

/// The calls that have come to a node and have not started: they wait for their context, for gradients or for a worker.
///   HW-1  add(), erase(), of() and contains() take a time that grows with the logarithm of the number of calls, and of() with what it
///         finds. So a peer that makes many calls does not slow the other peers.
///   HW-2  of() returns calls in the order in which they arrived. from() returns the calls of each context in that order.
/// Pre: the number and the context of a call stay as they are while the call is in here.
class waiting_calls {
 public:
  using call = contracts::incoming_call_ptr;

  void add(call which) { all_.insert(std::move(which)); }
  /// False if the call is not in here.
  bool erase(const call& which) { return all_.erase(which) > 0; }
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
      if (each->request.payload.message.node == caller) result.push_back(each);
    return result;
  }

 private:
  struct by_context {
    using is_transparent = void;
    static const context_id& context_of(const call& which) { return which->request.payload.context; }
    bool operator()(const call& a, const call& b) const {
      return std::tie(context_of(a), a->number) < std::tie(context_of(b), b->number);
    }
    bool operator()(const call& a, const context_id& b) const { return context_of(a) < b; }
    bool operator()(const context_id& a, const call& b) const { return a < context_of(b); }
  };

  std::set<call, by_context> all_;
};

}  // namespace troupe::calls
