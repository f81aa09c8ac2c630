// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/engine/protocol/initiator.hpp>

#include <algorithm>
#include <utility>

#include <troupe/engine/protocol/purse.hpp>

namespace troupe::protocol {

initiator::initiator(node_id here, std::set<node_id> participants, bool discovers)
    : here_(here), participants_(std::move(participants)), discovers_(discovers) {
  participants_.insert(here);
}

initiator::steps initiator::quiet(purse carried) {
  if (phase_ != phase::running && phase_ != phase::pruned) return {};
  merge(home_, std::move(carried));
  participants_.insert(home_.begun.begin(), home_.begun.end());
  if (!is_whole(home_)) return {};
  if (all_settled(home_)) return finish();
  if (phase_ == phase::pruned)
    return fail_with(errc::pass_aborted, "the pass is quiet, yet a send still waits after the unused ones were pruned");
  if (!discovers_) {
    steps result;
    for (auto who : home_.begun)
      if (std::find(home_.settled.begin(), home_.settled.end(), who) == home_.settled.end()) result.unused.push_back(who);
    return result;
  }
  phase_ = phase::discovering;
  asked_ = 1;
  steps result;
  result.walk_roots = true;
  return result;
}

initiator::steps initiator::found(const std::vector<message_id>& recvs) {
  if (phase_ != phase::discovering) return {};
  --asked_;
  steps result;
  for (const auto& recv : recvs) {
    participants_.insert(recv.node);  // the request makes that node take part
    if (live_[recv.node].insert(recv).second) result.discover[recv.node].push_back(recv);
  }
  asked_ += result.discover.size();
  return asked_ == 0 ? after_found() : result;
}

initiator::steps initiator::after_found() {
  phase_ = phase::pruned;
  for (auto who : home_.begun) live_.try_emplace(who);
  steps result;
  for (auto& [who, sends] : live_)
    if (std::find(home_.settled.begin(), home_.settled.end(), who) == home_.settled.end())
      result.prune.emplace(who, pruned{.live = {sends.begin(), sends.end()}, .carried = {}});
  for (auto& [who, each] : result.prune)
    each.carried = who == result.prune.rbegin()->first
                     ? purse{.weight = std::exchange(home_.weight, {}), .begun = {}, .settled = {}}
                     : split(home_);
  return result;
}

std::vector<node_id> initiator::unsettled() const {
  std::vector<node_id> result;
  for (auto who : participants_)
    if (std::find(home_.settled.begin(), home_.settled.end(), who) == home_.settled.end()) result.push_back(who);
  return result;
}

initiator::steps initiator::failed(node_id, errc code, std::string text) { return fail_with(code, std::move(text)); }

initiator::steps initiator::fail_with(errc code, std::string text) {
  if (phase_ == phase::aborting || phase_ == phase::complete) return {};
  failure_ = failure{code, std::move(text)};
  phase_ = phase::aborting;
  steps result;
  for (auto who : participants_) ask_abort(who, result);
  return abort_open_.empty() ? finish() : result;
}

void initiator::ask_abort(node_id who, steps& result) {
  if (down_.contains(who) || !abort_asked_.insert(who).second) return;
  abort_open_.insert(who);
  result.abort.push_back(who);
}

initiator::steps initiator::aborted(node_id from, const std::vector<node_id>& sent_to) {
  if (phase_ != phase::aborting) return {};
  abort_open_.erase(from);
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
