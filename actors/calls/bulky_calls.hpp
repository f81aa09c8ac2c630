// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include <troupe/actors/contracts/jobs.hpp>
#include <troupe/messages/tensor_rules.hpp>

namespace troupe::calls {

/// Calls on objects whose messages leave in fragments, so that messages that leave later may overtake them (see write_lanes). Until
/// such a call is answered, later calls of the same depth on its object wait here: they arrive in their order (OG-3).
class bulky_calls {
 public:
  /// A message with fewer bytes leaves whole.
  static constexpr std::uint64_t least_bytes = std::uint64_t{250} << 10;

  /// Whether the call has to wait; it then joins the line of its object.
  bool holds(const contracts::outgoing_call_ptr& call) {
    const auto found = lines_.find(key_of(call->request));
    if (found == lines_.end()) return false;
    found->second.waiting.push_back(call);
    return true;
  }

  /// To be called when the message of a call leaves.
  void leaves(const contracts::outgoing_call_ptr& call) {
    const auto& request = call->request;
    if (request.target && bytes_that_stay(request) >= least_bytes) lines_[key_of(request)].leaving = call.get();
  }

  /// To be called when a call has ended. Returns the calls that may leave now, in order.
  std::vector<contracts::outgoing_call_ptr> ended(const contracts::outgoing_call& call) {
    const auto found = lines_.find(key_of(call.request));
    if (found == lines_.end() || found->second.leaving != &call) return {};
    auto result = std::move(found->second.waiting);
    lines_.erase(found);
    return result;
  }

 private:
  /// Bytes of the message without the tensors that left ahead. All tensors count if one of them is sparse: `ahead` then has an entry
  /// for each part of it.
  static std::uint64_t bytes_that_stay(const call_request& request) {
    // More than the descriptions of a tensor and of a value take.
    constexpr std::uint64_t of_tensor = 64;
    constexpr std::uint64_t of_size = 16;
    constexpr std::uint64_t of_value = 64;
    std::uint64_t result = request.calls.size() + of_size * (request.failed.size() + request.payload.place.size());
    const auto& tensors = request.payload.tensors;
    const auto& ahead = request.payload.ahead.transfers;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      result += of_tensor + of_size * static_cast<std::uint64_t>(tensors[i].defined() ? tensors[i].dim() : 0);
      if (ahead.size() != tensors.size() || ahead[i] == 0) result += payload_bytes(tensors[i]);
    }
    for (const auto& [name, each] : request.values) {
      result += of_value + name.size() + troupe::bytes_of(each);
    }
    return result;
  }

  // Node and number of the object, and the depth: a call waits only for calls of its own depth, so calls never wait in a circle.
  using key = std::tuple<std::uint64_t, std::uint64_t, std::uint32_t>;
  static key key_of(const call_request& request) { return {request.target.node.value, request.target.number, request.depth}; }

  struct line {
    const contracts::outgoing_call* leaving = nullptr;  // leaves in fragments
    std::vector<contracts::outgoing_call_ptr> waiting;
  };
  std::map<key, line> lines_;
};

}  // namespace troupe::calls
