// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/engine/protocol/initiator.hpp>

#include <utility>

#include <troupe/engine/protocol/weight_throwing.hpp>

namespace troupe::protocol {

initiator::initiator(node_id here, std::set<node_id> participants, bool prunes)
    : here_(here), participants_(std::move(participants)), prunes_(prunes) {
  participants_.insert(here);
}

initiator::effects initiator::quiet(weight_share carried) {
  if (phase_ != phase::running && phase_ != phase::pruned) return {};
  merge(home_, std::move(carried));
  if (!is_whole(home_)) return {};
  if (all_settled(home_)) return finish();
  if (phase_ == phase::pruned)
    return fail_with(errc::pass_aborted, "the pass is quiet, yet a send still waits after the unused ones were pruned");
  phase_ = phase::discovering;
  asked_ = 1;
  return {walk_roots{}};
}

initiator::effects initiator::found(node_id from, const std::vector<message_id>& recvs, bool settled) {
  if (phase_ != phase::discovering) return {};
  --asked_;
  if (!settled) unsettled_.insert(from);
  std::map<node_id, std::vector<message_id>> open;
  for (const auto& recv : recvs) {
    participants_.insert(recv.node);  // the request makes that node take part
    if (live_[recv.node].insert(recv).second) open[recv.node].push_back(recv);
  }
  asked_ += open.size();
  effects result;
  for (auto& [who, sends] : open) result.emplace_back(ask_discover{who, std::move(sends)});
  return asked_ == 0 ? after_found() : result;
}

initiator::effects initiator::after_found() {
  if (unsettled_.empty())
    return fail_with(errc::pass_aborted,
                     "the pass is quiet, and more nodes have begun it than are done, yet no send waits on any node");
  if (!prunes_) return {name_unused{{unsettled_.begin(), unsettled_.end()}}};
  phase_ = phase::pruned;
  effects result;
  splitter shares;
  for (auto left = unsettled_.size(); const auto who : std::exchange(unsettled_, {})) {
    const auto& sends = live_[who];
    result.emplace_back(
      send_prune{who,
                 {sends.begin(), sends.end()},
                 --left == 0 ? weight_share{.weight = std::exchange(home_.weight, {})} : shares.split(home_)});
  }
  return result;
}

initiator::effects initiator::failed(node_id, errc code, std::string text) { return fail_with(code, std::move(text)); }

initiator::effects initiator::fail_with(errc code, std::string text) {
  if (phase_ == phase::aborting || phase_ == phase::complete) return {};
  failure_ = failure{code, std::move(text)};
  phase_ = phase::aborting;
  unsettled_.clear();
  effects result;
  for (auto who : participants_) abort(who, result);
  if (abort_open_.empty()) return finish();
  result.emplace_back(await_aborts{});
  return result;
}

void initiator::abort(node_id who, effects& result) {
  if (down_.contains(who) || !abort_asked_.insert(who).second) return;
  abort_open_.insert(who);
  unsettled_.insert(who);
  result.emplace_back(ask_abort{who});
}

initiator::effects initiator::aborted(node_id from, const std::vector<node_id>& sent_to, bool settled) {
  if (phase_ != phase::aborting) return {};
  abort_open_.erase(from);
  if (settled) unsettled_.erase(from);
  effects result;
  for (auto who : sent_to) abort(who, result);
  return abort_open_.empty() ? finish() : result;
}

initiator::effects initiator::peer_down(node_id who, std::string text) {
  if (!down_.insert(who).second || phase_ == phase::complete) return {};
  if (phase_ == phase::aborting) {
    abort_open_.erase(who);
    return abort_open_.empty() ? finish() : effects{};
  }
  return participants_.contains(who) ? fail_with(errc::peer_down, std::move(text)) : effects{};
}

initiator::effects initiator::deadline_passed(std::string text) {
  if (phase_ == phase::aborting) return finish();
  late_ = true;
  return fail_with(errc::deadline_passed, std::move(text));
}

initiator::effects initiator::finish() {
  phase_ = phase::complete;
  complete result;
  if (late_) result.not_done.assign(unsettled_.begin(), unsettled_.end());
  return {std::move(result)};
}

}  // namespace troupe::protocol
