// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/network/watched_connections.hpp>

#include <algorithm>
#include <cassert>
#include <utility>

#include <troupe/actors/network/tcp_scribe.hpp>

namespace troupe::network {

using clock = std::chrono::steady_clock;

void watched_connections::add(event_loop& loop, tcp_scribe* connection) {
  const auto found = neighbours_.find(connection);
  if (found != neighbours_.end() && found->second.other != nullptr) return wake(found->second);
  const auto same = [&](const watched& each) { return each.connection == connection; };
  if (std::none_of(all_.begin(), all_.end(), same))
    all_.push_back({&loop, caf::intrusive_ptr<tcp_scribe>(connection), clock::now()});
}

void watched_connections::meet(event_loop& loop, tcp_scribe* connection, const std::string& channel) {
  auto& here = neighbours_[connection];
  here = {&loop, caf::intrusive_ptr<tcp_scribe>(connection), channel};
  const auto first = first_ends_.find(channel);
  if (first == first_ends_.end()) {
    first_ends_.emplace(channel, connection);
    return;
  }
  here.other = first->second;
  auto& there = neighbours_.at(here.other);
  there.other = connection;
  first_ends_.erase(first);
  wake(here);  // each end may have written before
  wake(there);
}

void watched_connections::wake(neighbour& which) {
  if (which.is_rung) return;
  rung_.push_back(which.connection.get());
  which.is_rung = true;
}

bool watched_connections::ring(tcp_scribe* connection) {
  const auto found = neighbours_.find(connection);
  if (found == neighbours_.end() || found->second.other == nullptr) return false;
  wake(neighbours_.at(found->second.other));
  return true;
}

/// Ends that the connection has a neighbour.
void watched_connections::leave(tcp_scribe* connection) {
  const auto found = neighbours_.find(connection);
  if (found == neighbours_.end()) return;
  auto& gone = found->second;
  if (gone.other != nullptr) neighbours_.at(gone.other).other = nullptr;
  const auto first = first_ends_.find(gone.channel);
  if (first != first_ends_.end() && first->second == connection) first_ends_.erase(first);
  std::erase(rung_, connection);
  forgotten_.push_back(std::move(gone.connection));
  neighbours_.erase(found);
}

void watched_connections::forget(tcp_scribe* connection) {
  for (auto& each : all_)
    if (each.connection == connection) forgotten_.push_back(std::move(each.connection));
  has_gaps_ = true;
  leave(connection);
}

void watched_connections::forget_all(const event_loop& of) {
  for (auto& each : all_)
    if (each.loop == &of) each.connection.reset();
  has_gaps_ = true;
  std::vector<tcp_scribe*> gone;
  for (const auto& [connection, each] : neighbours_)
    if (each.loop == &of) gone.push_back(connection);
  for (auto* each : gone) leave(each);
  forgotten_.clear();
}

/// Polls a connection; true if there were bytes.
bool watched_connections::poll(event_loop& loop, tcp_scribe& connection, std::vector<event_loop*>& ended) {
  const bool any = connection.look();
  loop.settle();
  if (loop.ended() && std::find(ended.begin(), ended.end(), &loop) == ended.end()) ended.push_back(&loop);
  return any;
}

/// A connection that is polled may call add(), meet(), ring() and forget().
bool watched_connections::look_at_neighbours(std::vector<event_loop*>& ended) {
  bool any = false;
  due_.swap(rung_);
  for (auto* each : due_) {
    const auto found = neighbours_.find(each);
    if (found == neighbours_.end()) continue;  // forgotten meanwhile
    found->second.is_rung = false;
    const auto connection = found->second.connection;
    auto& loop = *found->second.loop;
    any = poll(loop, *connection, ended) || any;
    if (neighbours_.contains(each) && !connection->may_sleep()) add(loop, each);
  }
  due_.clear();
  return any;
}

/// The loop uses indices, because a connection that is polled may call add() and forget().
bool watched_connections::look(std::vector<event_loop*>& ended) {
  if (all_.empty() && rung_.empty() && forgotten_.empty()) return false;
  bool any = look_at_neighbours(ended);
  for (std::size_t i = 0; i < all_.size(); ++i) {
    if (!all_[i].connection || !all_[i].connection->has_news()) continue;
    const auto connection = all_[i].connection;
    if (!poll(*all_[i].loop, *connection, ended)) continue;
    all_[i].had_traffic = clock::now();
    any = true;
  }
  forgotten_.clear();
  if (std::exchange(has_gaps_, false)) std::erase_if(all_, [](const watched& each) { return !each.connection; });
  drop_quiet();
  return any;
}

bool watched_connections::may_sleep() {
  forgotten_.clear();
  const auto may = [](const watched& each) { return !each.connection || each.connection->may_sleep(); };
  return rung_.empty() && std::all_of(all_.begin(), all_.end(), may);
}

/// Drops connections without traffic (WC-1). Checks the next connection; if more than `most` are watched, as many as there are
/// above `most`. Pre: there are no gaps.
void watched_connections::drop_quiet() {
  assert(!has_gaps_);
  const auto now = clock::now();
  for (auto times = all_.size() > most ? all_.size() - most : 1; times > 0 && !all_.empty(); --times) {
    next_ = (next_ + 1) % all_.size();
    auto& turn = all_[next_];
    const auto quiet_for = all_.size() > most ? std::chrono::milliseconds{0} : watched_for;
    if (now - turn.had_traffic < quiet_for || !turn.connection->may_sleep()) continue;
    std::swap(turn, all_.back());
    all_.pop_back();
  }
}

}  // namespace troupe::network
