// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/engine/protocol/initiator.hpp>

#include <utility>

#include <troupe/engine/protocol/purse.hpp>

namespace troupe::protocol {

initiator::initiator(node_id here, std::set<node_id> participants, bool prunes)
    : here_(here), participants_(std::move(participants)), prunes_(prunes) {
  participants_.insert(here);
}

initiator::steps initiator::quiet(purse carried) {
  if (phase_ != phase::running && phase_ != phase::pruned) return {};
  merge(home_, std::move(carried));
  if (!is_whole(home_)) return {};
  if (all_settled(home_)) return finish();
  if (phase_ == phase::pruned)
    return fail_with(errc::pass_aborted, "the pass is quiet, yet a send still waits after the unused ones were pruned");
  phase_ = phase::discovering;
  asked_ = 1;
  steps result;
  result.walk_roots = true;
  return result;
}

initiator::steps initiator::found(node_id from, const std::vector<message_id>& recvs, bool settled) {
  if (phase_ != phase::discovering) return {};
  --asked_;
  if (!settled) unsettled_.insert(from);
  steps result;
  for (const auto& recv : recvs) {
    participants_.insert(recv.node);  // the request makes that node take part
    if (live_[recv.node].insert(recv).second) result.discover[recv.node].push_back(recv);
  }
  asked_ += result.discover.size();
  return asked_ == 0 ? after_found() : result;
}

initiator::steps initiator::after_found() {
  if (unsettled_.empty())
    return fail_with(errc::pass_aborted,
                     "the pass is quiet, and more nodes have begun it than are done, yet no send waits on any node");
  steps result;
  if (!prunes_) {
    result.unused.assign(unsettled_.begin(), unsettled_.end());
    return result;
  }
  phase_ = phase::pruned;
  for (const auto who : std::exchange(unsettled_, {})) {
    const auto& sends = live_[who];
    result.prune.emplace(who, pruned{.live = {sends.begin(), sends.end()}, .carried = {}});
  }
  splitter parts;
  for (auto& [who, each] : result.prune)
    each.carried = who == result.prune.rbegin()->first ? purse{.weight = std::exchange(home_.weight, {})} : parts.split(home_);
  return result;
}

std::vector<node_id> initiator::unsettled() const { return {unsettled_.begin(), unsettled_.end()}; }

initiator::steps initiator::failed(node_id, errc code, std::string text) { return fail_with(code, std::move(text)); }

initiator::steps initiator::fail_with(errc code, std::string text) {
  if (phase_ == phase::aborting || phase_ == phase::complete) return {};
  failure_ = failure{code, std::move(text)};
  phase_ = phase::aborting;
  unsettled_.clear();
  steps result;
  for (auto who : participants_) ask_abort(who, result);
  return abort_open_.empty() ? finish() : result;
}

void initiator::ask_abort(node_id who, steps& result) {
  if (down_.contains(who) || !abort_asked_.insert(who).second) return;
  abort_open_.insert(who);
  unsettled_.insert(who);
  result.abort.push_back(who);
}

initiator::steps initiator::aborted(node_id from, const std::vector<node_id>& sent_to, bool settled) {
  if (phase_ != phase::aborting) return {};
  abort_open_.erase(from);
  if (settled) unsettled_.erase(from);
  steps result;
  for (auto who : sent_to) ask_abort(who, result);
  return abort_open_.empty() ? finish() : result;
}

initiator::steps initiator::peer_down(node_id who, std::string text) {
  if (!down_.insert(who).second || phase_ == phase::complete) return {};
  if (phase_ == phase::aborting) {
    abort_open_.erase(who);
    return abort_open_.empty() ? finish() : steps{};
  }
  return participants_.contains(who) ? fail_with(errc::peer_down, std::move(text)) : steps{};
}

initiator::steps initiator::abort_timeout() { return phase_ == phase::aborting ? finish() : steps{}; }

initiator::steps initiator::finish() {
  phase_ = phase::complete;
  steps result;
  result.complete = true;
  return result;
}

}  // namespace troupe::protocol
