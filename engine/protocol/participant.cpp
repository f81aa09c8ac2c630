// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/engine/protocol/participant.hpp>

#include <utility>

#include <troupe/engine/protocol/purse.hpp>

namespace troupe::protocol {

participant::participant(node_id here, std::set<message_id> sends) : here_(here), sends_(std::move(sends)), waiting_(sends_) {
  purse_.begun.push_back(here);  // the name leaves this node with the first weight
}

participant::steps participant::start(purse all) {
  merge(purse_, std::move(all));
  work_ = true;
  return set_out();
}

participant::steps participant::gradients(message_id send, purse carried) {
  if (over_) return {};
  if (waiting_.erase(send) == 0) {
    over_ = true;
    auto what = sends_.contains(send) ? "gradients arrived twice for " : "gradients arrived for an unknown send, ";
    steps result;
    result.failure = what + to_string(send) + ": each send of a context gets its gradients once in a pass";
    return result;
  }
  merge(purse_, std::move(carried));
  work_ = true;
  return set_out();
}

participant::steps participant::prune(const std::set<message_id>& live, purse carried) {
  if (over_) return {};
  std::vector<message_id> dropped;
  for (auto send : waiting_)
    if (!live.contains(send)) dropped.push_back(send);
  for (auto send : dropped) waiting_.erase(send);
  merge(purse_, std::move(carried));
  work_ = true;
  auto result = set_out();
  result.drop = std::move(dropped);
  return result;
}

participant::steps participant::walk(walk_from where) {
  walk_ = where;
  return set_out();
}

participant::steps participant::set_out() {
  steps result;
  if (!away_ && !over_ && walk_) {
    away_ = true;
    result.walk = std::exchange(walk_, std::nullopt);
    return result;
  }
  if (!away_ && !over_ && work_) {
    work_ = false;
    away_ = true;
    result.start_burst = true;
  }
  return result;
}

participant::burst_terms participant::take_burst() { return {.carried = take(purse_), .settles = waiting_.empty()}; }

participant::steps participant::burst_ended(purse left) {
  away_ = false;
  steps result;
  if (over_) {
    result.answer_abort = abort_asked_;
    return result;
  }
  merge(purse_, std::move(left));
  if (work_ || walk_) return set_out();
  if (!is_empty(purse_)) {
    if (waiting_.empty()) merge(purse_, {.weight = {}, .begun = {}, .settled = {here_}});
    result.quiet = take(purse_);
  }
  return result;
}

participant::steps participant::burst_failed() {
  away_ = false;
  over_ = true;
  steps result;
  result.answer_abort = abort_asked_;
  return result;
}

participant::steps participant::abort() {
  over_ = true;
  abort_asked_ = true;
  steps result;
  result.answer_abort = !away_;
  return result;
}

}  // namespace troupe::protocol
