// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/calls/calls_made.hpp>

#include <vector>

namespace troupe::calls {

calls_made::effects calls_made::on(const event& what) {
  effects out;
  out_ = &out;
  std::visit([this](const auto& each) { take(each); }, what);
  return out;
}

calls_made::call* calls_made::find(number which, state expected) {
  const auto found = calls_.find(which);
  return found != calls_.end() && found->second.is == expected ? &found->second : nullptr;
}

void calls_made::take(const made& what) {
  auto& it = calls_.emplace_hint(calls_.end(), what.call, call{what, state::meets})->second;
  if (what.context) in_contexts_.emplace(what.context, what.call);
  if (what.is_up && !meeting_.contains(what.to)) return begin(what.call, it);
  meeting_[what.to].insert(what.call);
  out_->emplace_back(limit{what.call});
  out_->emplace_back(meet{what.call});
}

void calls_made::take(const met& what) {
  const auto* it = find(what.call, state::meets);
  if (it == nullptr) return;
  const auto all = meeting_.extract(it->facts.to);
  for (const auto each : all.mapped()) begin(each, calls_.at(each));
}

void calls_made::begin(number which, call& it) {
  const auto object = it.facts.object;
  it.is = state::lines_up;
  if (object) {
    lines_[object].calls.insert(which);
    ship_in_order(object);
  } else if (!it.facts.is_late) {
    it.is = state::ships;
    out_->emplace_back(ship{which});
  }
  if (it.is == state::lines_up) out_->emplace_back(limit{which});
}

void calls_made::take(const tensors_came& what) {
  const auto found = calls_.find(what.call);
  if (found == calls_.end()) return;
  auto& it = found->second;
  it.facts.is_late = false;
  if (it.is != state::lines_up) return;
  if (it.facts.object) return ship_in_order(it.facts.object);
  it.is = state::ships;
  out_->emplace_back(ship{what.call});
}

/// Lets the calls on the object ship their tensors, up to the first call whose tensors still come from a device.
void calls_made::ship_in_order(const object_id& object) {
  const auto found = lines_.find(object);
  if (found == lines_.end()) return;
  auto& [calls, last_shipped] = found->second;
  for (auto next = calls.upper_bound(last_shipped); next != calls.end(); ++next) {
    auto& it = calls_.at(*next);
    if (it.facts.is_late) return;
    it.is = state::ships;
    last_shipped = *next;
    out_->emplace_back(ship{*next});
  }
}

void calls_made::take(const shipped& what) {
  if (find(what.call, state::is_over) != nullptr) {
    out_->emplace_back(call_off{what.call});
    out_->emplace_back(forget{what.call});
    calls_.erase(what.call);
  } else if (auto* it = find(what.call, state::ships)) {
    it->is = state::is_ready;
    it->in_fragments = what.in_fragments;
    if (!it->facts.object) return ask_or_hold(what.call);
    ask_in_order(it->facts.object);
    if (it->is == state::is_ready) out_->emplace_back(limit{what.call});
  }
}

/// Lets the calls on the object leave, up to the first call that is not ready.
void calls_made::ask_in_order(const object_id& object) {
  const auto found = lines_.find(object);
  if (found == lines_.end()) return;
  auto& calls = found->second.calls;
  while (!calls.empty() && calls_.at(*calls.begin()).is == state::is_ready) ask_or_hold(calls.extract(calls.begin()).value());
  if (calls.empty()) lines_.erase(found);
}

void calls_made::ask_or_hold(number which) {
  auto& it = calls_.at(which);
  const bulk_key at{it.facts.object, it.facts.depth};
  if (const auto found = it.facts.object ? bulks_.find(at) : bulks_.end(); found != bulks_.end()) {
    it.is = state::is_held;
    found->second.held.insert(which);
    out_->emplace_back(limit{which});
    return;
  }
  it.is = state::asks;
  if (it.facts.object && it.in_fragments) bulks_[at].holder = which;
  out_->emplace_back(ask{which});
}

void calls_made::take(const answered& what) {
  if (find(what.call, state::asks) != nullptr) end({&what.call, 1}, nullptr);
}

void calls_made::take(const failed& what) { end({&what.call, 1}, &what.why); }

void calls_made::take(const context_closed& what) {
  std::vector<number> lost;
  for (auto at = in_contexts_.lower_bound({what.context, 0}); at != in_contexts_.end() && at->first == what.context; ++at)
    lost.push_back(at->second);
  end(lost, &what.why);
}

/// Calls that still ship are forgotten at once, because no tensor leaves for the node any more.
void calls_made::take(const node_down& what) {
  std::vector<number> lost;
  for (const auto& [which, it] : calls_)
    if (it.facts.to == what.who) lost.push_back(which);
  end(lost, &what.why);
  for (const auto which : lost)
    if (calls_.erase(which) > 0) out_->emplace_back(forget{which});
}

/// Ends the calls: with their answers if `why` is null, otherwise with a failure. Then lets the calls go on that waited for the
/// ended calls.
void calls_made::end(std::span<const number> those, const error* why) {
  bulk_keys left;
  for (const auto which : those) take_out(which, why, left);
  for (const auto& each : left) release(each);
}

void calls_made::take_out(number which, const error* why, bulk_keys& left) {
  const auto found = calls_.find(which);
  if (found == calls_.end() || found->second.is == state::is_over) return;
  auto& it = found->second;
  const auto& facts = it.facts;
  const auto was = std::exchange(it.is, state::is_over);
  if (facts.context) in_contexts_.erase({facts.context, which});
  if (was == state::meets) {
    const auto of_node = meeting_.find(facts.to);
    of_node->second.erase(which);
    if (of_node->second.empty()) meeting_.erase(of_node);
  } else if (facts.object) {
    const bulk_key at{facts.object, facts.depth};
    left.push_back(at);
    if (const auto line = lines_.find(facts.object); line != lines_.end()) line->second.calls.erase(which);
    if (const auto bulk = bulks_.find(at); bulk != bulks_.end()) {
      bulk->second.held.erase(which);
      if (bulk->second.holder == which) bulk->second.holder = 0;
    }
  }
  if (was == state::is_ready || was == state::is_held) out_->emplace_back(call_off{which});
  why == nullptr ? out_->emplace_back(finish{which}) : out_->emplace_back(fail{which, *why});
  if (was == state::ships) return;
  out_->emplace_back(forget{which});
  calls_.erase(found);
}

/// Lets the calls go on that waited for the end of a call on this object and of this depth.
void calls_made::release(const bulk_key& left) {
  if (const auto found = bulks_.find(left); found != bulks_.end() && found->second.holder == 0) {
    const auto over = bulks_.extract(found);
    for (const auto which : over.mapped().held) ask_or_hold(which);
  }
  ship_in_order(left.first);
  ask_in_order(left.first);
}

}  // namespace troupe::calls
