// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/calls/calls_taken.hpp>

#include <vector>

namespace troupe::calls {

calls_taken::effects calls_taken::on(const event& what) {
  effects out;
  out_ = &out;
  std::visit([this](const auto& each) { take(each); }, what);
  return out;
}

std::uint64_t calls_taken::bytes_of(node_id caller) const {
  const auto found = bytes_.find(caller);
  return found == bytes_.end() ? 0 : found->second;
}

bool calls_taken::may_wait(node_id caller, std::uint64_t bytes) const {
  const auto waiting = bytes_of(caller);
  return waiting == 0 || (waiting <= limit_ && bytes <= limit_ - waiting);
}

void calls_taken::take(const came& what) {
  if (what.bytes == 0 || may_wait(what.caller, what.bytes))
    calls_.emplace(what.call, call{what});
  else
    out_->emplace_back(refuse_excess_bytes{what.call});
}

/// Notes that the call waits or is queued.
void calls_taken::wait(call& it, state as) {
  it.is = as;
  waiting_.emplace(it.facts.context, it.facts.call);
  if (it.facts.bytes > 0) bytes_[it.facts.caller] += it.facts.bytes;
  out_->emplace_back(limit{it.facts.call});
}

void calls_taken::end_wait(const call& it) {
  waiting_.erase({it.facts.context, it.facts.call});
  if (it.facts.bytes == 0) return;
  const auto found = bytes_.find(it.facts.caller);
  if ((found->second -= it.facts.bytes) == 0) bytes_.erase(found);
}

calls_taken::call* calls_taken::find(number which, state expected) {
  const auto found = calls_.find(which);
  return found != calls_.end() && found->second.is == expected ? &found->second : nullptr;
}

void calls_taken::take(const held& what) {
  if (auto* it = find(what.call, state::has_come)) wait(*it, state::waits);
}

void calls_taken::take(const wait_over& what) {
  auto* it = find(what.call, state::waits);
  if (it == nullptr) return;
  end_wait(*it);
  it->is = state::has_come;
  out_->emplace_back(go_on{what.call});
}

void calls_taken::take(const ready& what) {
  auto* it = find(what.call, state::has_come);
  if (it == nullptr) return;
  it->is_short = what.is_short;
  it->number_in_pool = pool_.add(what.call, it->facts.depth, it->facts.caller);
  start_calls();
  if (it->is == state::has_come) wait(*it, state::is_queued);
}

void calls_taken::start_calls() {
  const auto has_credit = [this](node_id caller) { return answers_.has_credit(caller); };
  while (auto next = pool_.next(has_credit)) start_call(next->call, next->worker, false);
  const auto is_short = [this](number which) { return calls_.at(which).is_short; };
  while (series_ && series_->is_open && series_->calls < most_in_series && last_answer_ <= largest_in_series) {
    const auto next = pool_.next_in_series(has_credit, is_short);
    if (!next) return;
    ++series_->calls;
    start_call(*next, series_->on, true);
  }
}

void calls_taken::start_call(number which, std::optional<worker> on, bool joins_series) {
  auto& it = calls_.at(which);
  if (it.is == state::is_queued) end_wait(it);
  it.is = state::runs;
  it.in_series = joins_series;
  out_->emplace_back(start{which, on, joins_series});
}

void calls_taken::take(const begins_series& what) {
  auto* it = find(what.call, state::runs);
  if (it == nullptr || series_) return;
  it->in_series = true;
  series_ = series{what.on};
  start_calls();
}

void calls_taken::take(const leaves_series& what) {
  auto* it = find(what.call, state::runs);
  if (it == nullptr || !std::exchange(it->in_series, false)) return;
  series_->is_open = false;
  end_in_series(it->facts.depth);
  it->is = state::has_come;
  take(ready{{what.call}, it->is_short});
}

/// Says that a call of the series has ended, or has left it.
void calls_taken::end_in_series(std::size_t depth) {
  if (--series_->calls > 0) return pool_.ended_in_series(depth);
  pool_.idle(series_->on, depth);
  series_.reset();
}

void calls_taken::take(const dropped& what) {
  if (find(what.call, state::has_come) != nullptr) calls_.erase(what.call);
}

void calls_taken::take(const no_worker& what) {
  const auto* it = find(what.call, state::runs);
  if (it == nullptr) return;
  it->in_series ? end_in_series(it->facts.depth) : pool_.not_started(it->facts.depth);
  calls_.erase(what.call);
  out_->emplace_back(refuse{what.call, what.why});
  start_calls();
}

void calls_taken::refuse_waiting(number which, const error& why) {
  if (const auto* it = find(which, state::is_queued))
    pool_.take(it->number_in_pool, it->facts.depth, it->facts.caller);
  else if (find(which, state::waits) == nullptr)
    return;
  end_wait(calls_.at(which));
  calls_.erase(which);
  out_->emplace_back(refuse{which, why});
}

void calls_taken::take(const answered& what) {
  auto* it = find(what.call, state::runs);
  if (it == nullptr) return;
  it->is = state::answers;
  it->answer_bytes = last_answer_ = what.bytes;
  answers_.add(it->facts.caller, what.bytes);
}

void calls_taken::take(const answer_left& what) {
  if (const auto* it = find(what.call, state::answers)) {
    const auto caller = it->facts.caller;
    if (const auto bytes = answers_.left(caller, it->answer_bytes)) out_->emplace_back(ask_taken{caller, *bytes});
  } else if (find(what.call, state::runs) == nullptr) {
    return;
  }
  calls_.erase(what.call);
}

void calls_taken::take(const answers_taken& what) {
  answers_.taken(what.caller, what.bytes);
  start_calls();
}

void calls_taken::take(const is_free& what) {
  series_ && series_->on == what.who ? end_in_series(what.depth) : pool_.idle(what.who, what.depth);
  start_calls();
  while (const auto surplus = pool_.surplus()) out_->emplace_back(let_go{*surplus});
  if (pool_.has_idle() && !std::exchange(ticks_, true)) out_->emplace_back(tick_later{});
}

void calls_taken::take(const is_blocked&) {
  pool_.blocked();
  start_calls();
}

void calls_taken::take(const is_resumed&) { pool_.resumed(); }

void calls_taken::take(const tick&) {
  for (const auto each : pool_.unneeded()) out_->emplace_back(let_go{each});
  ticks_ = pool_.has_idle();
  if (ticks_) out_->emplace_back(tick_later{});
}

void calls_taken::take(const context_closed& what) {
  for (auto at = waiting_.lower_bound({what.context, 0}); at != waiting_.end() && at->first == what.context;)
    refuse_waiting((at++)->second, what.why);
}

void calls_taken::take(const node_down& what) {
  answers_.forget(what.who);
  std::vector<number> lost;
  for (const auto& [context, which] : waiting_)
    if (calls_.at(which).facts.caller == what.who) lost.push_back(which);
  for (const auto which : lost) refuse_waiting(which, what.why);
  std::erase_if(calls_,
                [&](const auto& each) { return each.second.is == state::answers && each.second.facts.caller == what.who; });
}

}  // namespace troupe::calls
