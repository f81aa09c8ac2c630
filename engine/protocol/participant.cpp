// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/engine/protocol/participant.hpp>

#include <algorithm>
#include <utility>

#include <troupe/engine/protocol/purse.hpp>

namespace troupe::protocol {

participant::participant(node_id here, std::set<message_id> sends, call_tree_place_ptr place)
    : here_(here), sends_(std::move(sends)), waiting_(sends_), place_(std::move(place)) {
  purse_.begun = 1;  // leaves this node with the first weight
}

participant::steps participant::start(purse all) {
  merge(purse_, std::move(all));
  work_ = true;
  return set_out();
}

participant::steps participant::gradients(message_id send, purse carried, sender from) {
  if (over_) return {};
  if (waiting_.erase(send) == 0) {
    over_ = true;
    auto what = sends_.contains(send) ? "gradients arrived twice for " : "gradients arrived for an unknown send, ";
    steps result;
    result.failure = what + to_string(send) + ": each send of a context gets its gradients once in a pass";
    return result;
  }
  if (place_ && from.node == place_->parent && from.node != node_id{}) ++from_parent_;
  note_answer(from);
  merge(purse_, std::move(carried));
  work_ = true;
  return set_out();
}

participant::steps participant::reported(purse carried, sender from) {
  if (over_) return {};
  note_answer(from);
  merge(purse_, std::move(carried));
  return away_ ? steps{} : be_quiet();
}

void participant::note_answer(sender from) {
  if (from.answers > 0 && place_ && place_->children.contains(from.node)) change(from.node, 0, from.answers);
}

void participant::change(node_id child, std::uint32_t sent, std::uint32_t answered) {
  auto& now = children_[child];
  if (now.is_open()) --open_;
  now.sent += sent;
  now.answered = std::max(now.answered, answered);
  if (now.is_open()) ++open_;
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

burst_share participant::take_burst() {
  return {.carried = take(purse_),
          .settles = waiting_.empty() && !settled_,
          .answers = open_ == 0 ? from_parent_ : 0,
          .place = place_};
}

participant::steps participant::burst_ended(burst_share back) {
  away_ = false;
  if (over_) {
    steps result;
    result.answer_abort = abort_asked_;
    return result;
  }
  if (back.settles && is_empty(back.carried)) settled_ = true;  // counted in the last message
  if (back.answered) answered_ = std::max(answered_, back.answers);
  if (place_)
    for (const auto& [who, count] : back.sent)
      if (place_->children.contains(who)) change(who, count, 0);
  merge(purse_, std::move(back.carried));
  return work_ || walk_ ? set_out() : be_quiet();
}

participant::steps participant::be_quiet() {
  if (open_ > 0 || (is_empty(purse_) && answered_ == from_parent_)) return {};
  if (!is_empty(purse_) && waiting_.empty() && !settled_) {
    ++purse_.settled;
    settled_ = true;
  }
  answered_ = from_parent_;
  steps result;
  result.quiet = report{.carried = take(purse_), .to_parent = from_parent_ > 0, .answers = from_parent_};
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
