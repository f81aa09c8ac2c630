// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <deque>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <troupe/actors/contracts/jobs.hpp>

namespace troupe::calls {

/// Late calls (elements of their tensors are still on their way from a device), and calls that wait behind late calls.
///   LC-1  calls on one object leave in the order in which they were made. A call on no object waits only for its own tensors.
///   LC-2  a call that has ended delays no other call.
///   LC-3  a call leaves once: before hold() has taken a call, arrived() does not return it.
class late_calls {
 public:
  /// Whether the call has to wait. A call on an object that has to wait joins the queue of the object.
  bool hold(const contracts::outgoing_call_ptr& call) {
    const auto object = call->request.target;
    if (!object) return call->late && alone_.insert(call.get()).second;
    const auto line = lines_.find(object);
    if (line == lines_.end() && !call->late) return false;
    lines_[object].push_back(call);
    return true;
  }

  /// To be called when the elements of a late call are there. Returns the calls that may leave now, in order.
  std::vector<contracts::outgoing_call_ptr> arrived(const contracts::outgoing_call_ptr& call) {
    call->late = false;
    if (call->request.target) return passed(call->request.target);
    return alone_.erase(call.get()) > 0 ? std::vector{call} : std::vector<contracts::outgoing_call_ptr>{};
  }

  /// To be called when a call has ended. Returns the calls that may leave now, in order.
  std::vector<contracts::outgoing_call_ptr> ended(const contracts::outgoing_call& call) {
    alone_.erase(&call);
    return passed(call.request.target);
  }

 private:
  std::vector<contracts::outgoing_call_ptr> passed(const object_id& object) {
    std::vector<contracts::outgoing_call_ptr> result;
    const auto found = lines_.find(object);
    if (found == lines_.end()) return result;
    auto& line = found->second;
    for (; !line.empty() && (line.front()->ended || !line.front()->late); line.pop_front())
      if (!line.front()->ended) result.push_back(line.front());
    if (line.empty()) lines_.erase(found);
    return result;
  }

  std::unordered_map<object_id, std::deque<contracts::outgoing_call_ptr>> lines_;  // the first call of each line is late
  std::unordered_set<const contracts::outgoing_call*> alone_;                      // held calls on no object
};

}  // namespace troupe::calls
