// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/membership/heard_members.hpp>

#include <algorithm>
#include <functional>
#include <unordered_map>

#include <troupe/actors/membership/neighbours.hpp>

namespace troupe::membership {

namespace {

std::uint64_t hash_of(const std::string& name) { return std::hash<std::string>()(name); }

}  // namespace

heard_members::entry* heard_members::find_entry(node_id who) {
  const auto at = std::lower_bound(entries_.begin(), entries_.end(), who, [](const entry& a, node_id id) { return a.id < id; });
  return at == entries_.end() || at->id != who ? nullptr : &*at;
}

const heard_members::entry* heard_members::find_entry(node_id who) const {
  return const_cast<heard_members*>(this)->find_entry(who);
}

const member* heard_members::find(node_id who) const {
  const auto* known = find_entry(who);
  return known != nullptr && known->is_listed() ? known->who.get() : nullptr;
}

const member* heard_members::find(const std::string& name) const {
  const auto hash = hash_of(name);
  for (auto at = std::lower_bound(names_.begin(), names_.end(), std::pair(hash, node_id{}));
       at != names_.end() && at->first == hash; ++at)
    if (const auto* known = find_entry(at->second); known->who->name == name) return known->who.get();
  return nullptr;
}

bool heard_members::is_up(node_id who) const {
  const auto* known = find_entry(who);
  return known != nullptr && known->counts();
}

bool heard_members::doubts(node_id who) const {
  const auto* known = find_entry(who);
  return known != nullptr && known->state != member_state::up;
}

std::vector<member> heard_members::members() const {
  std::vector<member> result;
  for (const auto& each : entries_)
    if (each.counts()) result.push_back(*each.who);
  return result;
}

std::vector<member_news> heard_members::about(node_id who) const {
  const auto* known = find_entry(who);
  if (known == nullptr) return {};
  return {{*known->who, known->incarnation, known->state}};
}

std::vector<member_news> heard_members::all() const {
  std::vector<member_news> result{{own_, incarnation_, member_state::up}};
  result.reserve(entries_.size() + 1);
  for (const auto& each : entries_) result.push_back({*each.who, each.incarnation, each.state});
  return result;
}

std::vector<member_news> heard_members::beyond(const std::vector<member_news>& theirs) const {
  std::unordered_map<node_id, const member_news*> known;
  for (const auto& each : theirs) known[each.who.id] = &each;
  auto result = all();
  std::erase_if(result, [&](const member_news& mine) {
    const auto found = known.find(mine.who.id);
    return found != known.end() && !is_newer(mine.incarnation, mine.state, found->second->incarnation, found->second->state);
  });
  return result;
}

std::uint64_t heard_members::digest(node_id one, node_id other) const {
  std::uint64_t result = 0;
  for (const auto& each : entries_)
    if (each.id != one && each.id != other && each.is_listed())
      result ^= spread(each.id.value + spread(4 * std::uint64_t{each.incarnation} + static_cast<std::uint64_t>(each.state)));
  return result;
}

heard_members::told* heard_members::told_of(node_id who) {
  auto* known = find_entry(who);
  return known == nullptr ? nullptr : &known->last_told;
}

/// Gives a member its right name. Needed because another node may have told a wrong name before.
void heard_members::rename(entry& which, const member& who) {
  if (which.is_listed()) list_name(which, false);
  which.who = std::make_shared<const member>(who);
  if (which.is_listed()) list_name(which, true);
}

void heard_members::list_name(const entry& which, bool is_listed) {
  const std::pair named(hash_of(which.who->name), which.id);
  const auto at = std::lower_bound(names_.begin(), names_.end(), named);
  if (is_listed)
    names_.insert(at, named);
  else
    names_.erase(at);
}

}  // namespace troupe::membership
