// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/engine/protocol/participant.hpp>

#include <algorithm>
#include <utility>

#include <troupe/engine/protocol/weight_throwing.hpp>
#include <troupe/messages/expect.hpp>

namespace troupe::protocol {

participant::participant(std::set<message_id> sends, call_tree_position_ptr position, bool leads)
    : sends_(std::move(sends)), waiting_(sends_), position_(std::move(position)), leads_(leads) {
  weight_.begun = 1;  // leaves this node with the first weight
}

participant::effects participant::start(weight_share all) {
  merge(weight_, std::move(all));
  work_ = true;
  return go_on();
}

participant::effects participant::gradients(message_id send, weight_share carried, sender from) {
  if (from.node != node_id{}) heard_from_.insert(from.node);
  if (over()) return {};
  if (waiting_.erase(send) == 0) {
    phase_ = phase::over;
    auto what = sends_.contains(send) ? "gradients arrived twice for " : "gradients arrived for an unknown send, ";
    return {report_failure{
      {errc::invalid_gradient, what + to_string(send) + ": each send of a context gets its gradients once in a pass"}, true}};
  }
  if (position_ && from.node == position_->parent && from.node != node_id{}) ++from_parent_;
  note_answer(from);
  merge(weight_, std::move(carried));
  work_ = true;
  return go_on();
}

participant::effects participant::reported(weight_share carried, sender from) {
  if (over()) return {};
  note_answer(from);
  merge(weight_, std::move(carried));
  return go_on();
}

void participant::note_answer(sender from) {
  if (from.answers > 0 && position_ && position_->children.contains(from.node)) change(from.node, 0, from.answers);
}

void participant::change(node_id child, std::uint32_t sent, std::uint32_t answered) {
  auto& now = children_[child];
  if (now.is_open()) --open_;
  now.sent += sent;
  now.answered = std::max(now.answered, answered);
  if (now.is_open()) ++open_;
}

participant::effects participant::prune(const std::set<message_id>& live, weight_share carried) {
  if (over()) return {};
  std::erase_if(waiting_, [&](message_id send) {
    if (!live.contains(send)) drops_.push_back(send);
    return !live.contains(send);
  });
  merge(weight_, std::move(carried));
  work_ = true;
  return go_on();
}

participant::effects participant::walk_roots() {
  asks_roots_ = true;
  return go_on();
}

participant::effects participant::discover(const std::vector<message_id>& sends) {
  TROUPE_EXPECT(!over());
  ++questions_;
  walk_sends_.insert(walk_sends_.end(), sends.begin(), sends.end());
  return go_on();
}

participant::effects participant::abort() {
  if (phase_ == phase::running) phase_ = phase::over;
  aborts_ = true;
  effects result;
  if (away()) result.emplace_back(stop_burst{});
  return go_on(std::move(result));
}

participant::effects participant::peer_down(node_id who, const std::string& text) {
  if (over()) return {};
  if (sent_to_.contains(who)) return {report_failure{{errc::peer_down, text}}};
  if (away()) down_.emplace(who, text);  // only the returned burst tells whether gradients were sent to that node
  return {};
}

participant::effects participant::gather() {
  gathers_ = true;
  return go_on();
}

participant::effects participant::close(bool reaches_initiator) {
  if (phase_ == phase::closed) return {};
  phase_ = phase::closed;
  effects result;
  if (!leads_ && !reaches_initiator) result.emplace_back(tell_senders{heard_from_});
  if (away()) result.emplace_back(stop_burst{});
  return go_on(std::move(result));
}

participant::effects participant::returned(burst_share back, std::optional<failure> why) {
  outside_ = outside::nothing;
  walking_ = 0;
  for (const auto& [who, count] : back.sent) {
    sent_to_.insert(who);
    if (const auto known = down_.find(who); known != down_.end() && !why) why = failure{errc::peer_down, known->second};
  }
  down_.clear();
  if (over()) return go_on();
  if (why) {
    phase_ = phase::over;
    return go_on({report_failure{std::move(*why)}});
  }
  if (back.settles && is_empty(back.carried)) settled_ = true;  // counted in the last message
  if (back.answered) answered_ = std::max(answered_, back.answers);
  if (position_)
    for (const auto& [who, count] : back.sent)
      if (position_->children.contains(who)) change(who, count, 0);
  merge(weight_, std::move(back.carried));
  return go_on();
}

participant::effects participant::walked(std::vector<message_id> recvs) {
  effects result;
  if (phase_ != phase::closed) {
    if (walking_ == 0)
      result.emplace_back(answer_walk{std::move(recvs)});
    else
      result.emplace_back(answer_discover{walking_, std::move(recvs)});
  }
  outside_ = outside::nothing;
  walking_ = 0;
  down_.clear();
  return go_on(std::move(result));
}

participant::effects participant::go_on(effects result) {
  if (away()) return result;
  const bool has_work = phase_ == phase::running && (asks_roots_ || questions_ > 0 || work_);
  if (gathers_ && !has_work && phase_ != phase::closed) {
    gathers_ = false;
    result.insert(result.begin(), hand_out{});  // first, because a later effect may begin work on this node at once
  }
  if (phase_ == phase::running) set_out(result);
  if (phase_ == phase::over && std::exchange(aborts_, false)) {
    result.emplace_back(answer_abort{{sent_to_.begin(), sent_to_.end()}});
    if (!leads_) result.emplace_back(end{});
  }
  if (phase_ == phase::closed) result.emplace_back(end{});
  return result;
}

void participant::set_out(effects& result) {
  if (asks_roots_) {
    asks_roots_ = false;
    outside_ = outside::walk;
    result.emplace_back(run_walk{walk_from::roots, {}});
  } else if (questions_ > 0) {
    walking_ = std::exchange(questions_, 0);
    outside_ = outside::walk;
    result.emplace_back(run_walk{walk_from::sends, std::exchange(walk_sends_, {})});
  } else if (work_) {
    work_ = false;
    outside_ = outside::burst;
    result.emplace_back(run_burst{{.carried = take(weight_),
                                   .settles = waiting_.empty() && !settled_,
                                   .answers = open_ == 0 ? from_parent_ : 0,
                                   .position = position_},
                                  std::exchange(drops_, {})});
  } else {
    be_quiet(result);
  }
}

void participant::be_quiet(effects& result) {
  if (open_ > 0 || (is_empty(weight_) && answered_ == from_parent_)) return;
  if (!is_empty(weight_) && waiting_.empty() && !settled_) {
    ++weight_.settled;
    settled_ = true;
  }
  answered_ = from_parent_;
  result.emplace_back(report_quiet{take(weight_), from_parent_ > 0, from_parent_});
}

}  // namespace troupe::protocol
