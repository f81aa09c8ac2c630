// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/membership/roster.hpp>

#include <algorithm>
#include <iterator>

#include <troupe/actors/membership/neighbours.hpp>
#include <troupe/actors/settings.hpp>

namespace troupe::membership {

namespace {

constexpr std::int64_t longest_grave_ns = 3'600'000'000'000;
constexpr std::size_t longest_host = 253;  // of a name, by RFC 1035

/// Whether the id, name and host are possible (RT-6).
bool is_possible(const member& who) {
  return who.id.value != 0 && valid_node_name(who.name) && !who.host.empty() && who.host.size() <= longest_host;
}

bool has_address_of(const member& one, const member& other) { return one.host == other.host && one.port == other.port; }

std::string text_of(member_state state) { return state == member_state::left ? "it left" : "other nodes hold it for gone"; }

}  // namespace

roster roster::seen_by(const member& other) const {
  auto result = *this;
  if (auto* known = result.find_entry(other.id)) result.erase(*known);
  result.own_ = other;
  result.knows_neighbours_ = false;
  result.take({}, {own_, incarnation_, member_state::up}, {}, 0);
  result.fresh_.clear();
  result.changes_.clear();
  for (auto& each : result.entries_) each.last_told = told::known;
  return result;
}

void roster::hear(node_id from, const std::vector<member_news>& news, std::int64_t now_ns) {
  for (const auto& each : news) take(from, each, text_of(each.state), now_ns);
  settle_clashes(now_ns);
}

void roster::hear_all(node_id from, std::vector<member_news> news, std::int64_t now_ns) {
  std::erase_if(news, [&](const member_news& each) {
    const bool is_unknown = each.state >= member_state::gone && find_entry(each.who.id) == nullptr;
    if (is_unknown) clashes_.erase(each.who.id);
    return is_unknown;
  });
  hear(from, news, now_ns);
}

std::vector<member_news> roster::met(const member& who, std::uint32_t incarnation, std::int64_t now_ns) {
  take({}, {who, incarnation, member_state::up}, {}, now_ns);
  spoke(who.id);
  auto* known = find_entry(who.id);
  if (known == nullptr) return {};
  const bool is_same = known->who->name == who.name;
  if (is_same && is_possible(who) && !has_address_of(*known->who, who))
    known->who = std::make_shared<const member>(who);  // what others tell may be older
  return known->state == member_state::up ? std::vector<member_news>{} : about(who.id);
}

void roster::accuse(node_id who, std::int64_t now_ns) {
  const auto* known = find_entry(who);
  if (known == nullptr || known->state != member_state::up) return;
  const auto [last, is_first] = accused_.try_emplace(who, now_ns);
  if (!is_first && now_ns - last->second < limits_.accuse_again.count()) return;
  last->second = now_ns;
  take({}, {*known->who, known->incarnation, member_state::suspected}, {}, now_ns);
}

void roster::end(node_id who, member_state how, const std::string& reason, std::int64_t now_ns) {
  if (const auto* known = find_entry(who)) take({}, {*known->who, known->incarnation, how}, reason, now_ns);
}

void roster::beat(std::int64_t now_ns) {
  std::vector<node_id> gone;
  for (const auto& [id, since] : since_) {
    auto* known = find_entry(id);
    const auto age = now_ns - since;
    if (known->state == member_state::suspected && !known->is_unreachable && age >= limits_.patience.count()) {
      known->is_unreachable = true;
      knows_neighbours_ = false;
      changes_.push_back({change::kind::unreachable, *known->who, "other nodes get no answer from it"});
    }
    const bool is_over = known->is_listed() ? age >= limits_.forget_after.count() : age >= longest_grave_ns;
    if (is_over) gone.push_back(id);
  }
  for (const auto id : gone) {
    auto* known = find_entry(id);
    if (known == nullptr) continue;
    if (known->is_listed()) {
      const auto silence = std::to_string((now_ns - since_.at(id)) / 1'000'000);
      change_to(*known, {*known->who, known->incarnation, member_state::gone}, {}, "unreachable for " + silence + " ms",
                now_ns);
      fresh_.erase(id);  // not passed on: the other nodes see the same by their own clocks
    } else {
      erase(*known);
    }
  }
  settle_clashes(now_ns);
  drop_oldest();
}

std::vector<roster::item> roster::take_news() {
  std::vector<item> result;
  for (const auto& [id, source] : std::exchange(fresh_, {})) {
    if (id == own_.id)
      result.push_back({{own_, incarnation_, member_state::up}, source.from, source.number});
    else if (const auto* known = find_entry(id))
      result.push_back({{*known->who, known->incarnation, known->state}, source.from, source.number});
  }
  return result;
}

const std::vector<node_id>& roster::neighbours() const {
  if (std::exchange(knows_neighbours_, true)) return neighbours_;
  std::vector<node_id> others;
  others.reserve(entries_.size());
  for (const auto& each : entries_)
    if (each.counts()) others.push_back(each.id);
  return neighbours_ = neighbours_of(own_.id, std::move(others), limits_.most_in_mesh, limits_.rings);
}

bool roster::is_neighbour(node_id who) const {
  const auto& all = neighbours();
  return std::binary_search(all.begin(), all.end(), who);
}

bool roster::is_left_out(node_id who) const {
  const auto found = clashes_.find(who);
  return found != clashes_.end() && found->second.news.who.name != own_.name;
}

void roster::take(node_id from, const member_news& news, const std::string& reason, std::int64_t now_ns) {
  const auto id = news.who.id;
  if (id == own_.id) return contradict(news);
  if (!is_possible(news.who) || news.incarnation > most_incarnation) return;
  const bool is_end = news.state >= member_state::gone;
  auto* known = find_entry(id);
  if (known != nullptr && known->who->name != news.who.name) {
    if (from != node_id{} || (known->is_listed() && !makes_way(from, news, now_ns))) return;
    rename(*find_entry(id), news.who);
    known = find_entry(id);
  }
  if (known != nullptr) {
    if (!is_newer(news.incarnation, news.state, known->incarnation, known->state)) return;
    if (!is_end && !known->is_listed() && !makes_way(from, news, now_ns)) return;
    // makes_way() may have moved the entry.
    return change_to(*find_entry(id), news, from, reason, now_ns);
  }
  // The member is unknown. News of its end are taken in all the same: they may come before the news that the member is up.
  if (is_end && since_.size() >= limits_.most_members) return;
  if (!is_end && entries_.size() >= limits_.most_members) return tell_full(news.who);
  if (!is_end && !makes_way(from, news, now_ns)) return;
  clashes_.erase(id);
  const auto at = std::lower_bound(entries_.begin(), entries_.end(), id, [](const entry& a, node_id x) { return a.id < x; });
  auto& added = *entries_.insert(at, {id, nullptr, 0, member_state::left, true});
  change_to(added, news, from, reason, now_ns);
}

/// Reports once that a member is left out because this node knows as many members as it can.
void roster::tell_full(const member& who) {
  if (std::exchange(is_full_told_, true)) return;
  changes_.push_back(
    {change::kind::clash, who, "this node knows " + std::to_string(limits_.most_members) + " members, and takes no more"});
}

/// Whether the name of a new member is free. If this node itself has spoken with the new member (`from` is empty), an older
/// member with this name and address has ended: it was restarted as the new member. News of other nodes do not show this,
/// because they come in any order.
bool roster::makes_way(node_id from, const member_news& for_news, std::int64_t now_ns) {
  const auto& who = for_news.who;
  const auto* holder = who.name == own_.name ? &own_ : find(who.name);
  if (holder == nullptr) return true;
  if (holder->id == who.id) return true;
  if (holder != &own_ && from == node_id{} && has_address_of(*holder, who)) {
    end(holder->id, member_state::gone, "replaced by a restarted node at the same address", now_ns);
    return true;
  }
  if (clashes_.size() >= most_clashes && !clashes_.contains(who.id)) return false;
  const auto [known, is_new] = clashes_.try_emplace(who.id, clash{for_news, from, now_ns});
  if (is_new && holder != &own_) changes_.push_back({change::kind::contested, *holder, {}});
  if (!is_new && is_newer(for_news.incarnation, for_news.state, known->second.news.incarnation, known->second.news.state))
    known->second.news = for_news;
  return false;
}

/// Takes in the news that waited for a name, once the name is free. News about a node that was restarted at another address may
/// come before the news that its predecessor has ended.
void roster::settle_clashes(std::int64_t now_ns) {
  std::vector<clash> free;
  for (auto i = clashes_.begin(); i != clashes_.end();) {
    auto& [id, each] = *i;
    const auto& name = each.news.who.name;
    const auto* holder = name == own_.name ? &own_ : find(name);
    const auto age = now_ns - each.since_ns;
    if (holder != nullptr && age >= limits_.patience.count() && !std::exchange(each.is_told, true))
      changes_.push_back({change::kind::clash, each.news.who,
                          "the name '" + name + "' is taken by node " + to_string(holder->id) + "; give it another name"});
    if (holder == nullptr) free.push_back(each);
    i = holder == nullptr || age >= longest_grave_ns ? clashes_.erase(i) : std::next(i);
  }
  for (const auto& each : free) take(each.from, each.news, {}, now_ns);
}

void roster::change_to(entry& which, const member_news& news, node_id from, const std::string& reason, std::int64_t now_ns) {
  using kind = change::kind;
  const bool was_up = which.counts();
  const bool was_listed = which.is_listed();
  const bool is_new = which.who == nullptr;
  if (is_new || !has_address_of(*which.who, news.who)) which.who = std::make_shared<const member>(news.who);
  which.incarnation = news.incarnation;
  which.state = news.state;
  if (was_listed != which.is_listed()) list_name(which, which.is_listed());
  which.is_unreachable = which.is_unreachable && news.state == member_state::suspected && was_listed;
  fresh_[which.id] = {from, ++last_news_};
  if (news.state == member_state::up)
    since_.erase(which.id);
  else if (!was_listed || which.state != member_state::suspected || !since_.contains(which.id))
    since_[which.id] = now_ns;
  knows_neighbours_ = knows_neighbours_ && was_up == which.counts();
  if (!was_up && which.counts()) changes_.push_back({kind::arrived, *which.who, {}});
  if (was_listed && !which.is_listed()) changes_.push_back({kind::gone, *which.who, reason});
}

void roster::erase(entry& which) {
  if (which.is_listed()) list_name(which, false);
  for (auto* each : {&since_, &accused_}) each->erase(which.id);
  fresh_.erase(which.id);
  entries_.erase(entries_.begin() + (&which - entries_.data()));
}

/// Answers news about this node itself (RT-2).
void roster::contradict(const member_news& news) {
  const bool is_wrong = news.state != member_state::up || news.incarnation > incarnation_;
  if (!is_wrong || news.incarnation < incarnation_ || news.incarnation > most_incarnation) return;
  incarnation_ = std::min(most_incarnation, news.incarnation + (news.state != member_state::up ? 1 : 0));
  fresh_[own_.id] = {{}, ++last_news_};
}

void roster::drop_oldest() {
  std::vector<std::pair<std::int64_t, node_id>> gone;
  for (const auto& [id, since] : since_)
    if (!find_entry(id)->is_listed()) gone.emplace_back(since, id);
  if (gone.size() <= most_gone) return;
  std::sort(gone.begin(), gone.end());
  gone.resize(gone.size() - most_gone);
  for (const auto& [since, id] : gone) erase(*find_entry(id));
}

}  // namespace troupe::membership
