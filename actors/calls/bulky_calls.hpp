// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include <troupe/actors/contracts/jobs.hpp>
#include <troupe/messages/tensor_rules.hpp>

namespace troupe::calls {

/// Calls on objects whose messages leave in fragments, so that messages that leave later may overtake them (see write_lanes). Until
/// such a call is answered, later calls on its object wait here: calls on one object arrive in their order (OG-3).
class bulky_calls {
 public:
  /// A message with fewer bytes leaves whole.
  static constexpr std::uint64_t least_bytes = std::uint64_t{250} << 10;

  /// Whether the call has to wait; it then joins the line of its object.
  bool holds(const contracts::outgoing_call_ptr& call) {
    const auto found = lines_.find(call->request.target);
    if (found == lines_.end()) return false;
    found->second.second.push_back(call);
    return true;
  }

  /// To be called when the message of a call leaves.
  void leaves(const contracts::outgoing_call_ptr& call) {
    const auto& request = call->request;
    if (request.target && bytes_that_stay(request) >= least_bytes) lines_[request.target].first = call.get();
  }

  /// To be called when a call has ended. Returns the calls that may leave now, in order.
  std::vector<contracts::outgoing_call_ptr> ended(const contracts::outgoing_call& call) {
    const auto found = lines_.find(call.request.target);
    if (found == lines_.end() || found->second.first != &call) return {};
    auto result = std::move(found->second.second);
    lines_.erase(found);
    return result;
  }

 private:
  /// Bytes of the message without the tensors that left ahead. All tensors count if one of them is sparse: `ahead` then has an entry
  /// for each part of it.
  static std::uint64_t bytes_that_stay(const call_request& request) {
    std::uint64_t result = 0;
    const auto& tensors = request.payload.tensors;
    const auto& ahead = request.payload.ahead.transfers;
    for (std::size_t i = 0; i < tensors.size(); ++i)
      if (ahead.size() != tensors.size() || ahead[i] == 0) result += payload_bytes(tensors[i]);
    for (const auto& [name, each] : request.values)
      if (const auto* text = std::get_if<std::string>(&each.value)) result += text->size();
    return result;
  }

  // For each object the call that leaves in fragments, and the calls that wait.
  std::unordered_map<object_id, std::pair<const contracts::outgoing_call*, std::vector<contracts::outgoing_call_ptr>>> lines_;
};

}  // namespace troupe::calls
