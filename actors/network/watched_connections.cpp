// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/network/watched_connections.hpp>

#include <algorithm>
#include <cassert>
#include <utility>

#include <troupe/actors/network/tcp_scribe.hpp>

namespace troupe::network {

using clock = std::chrono::steady_clock;

void watched_connections::add(event_loop& loop, tcp_scribe* connection) {
  const auto same = [&](const watched& each) { return each.connection == connection; };
  if (std::none_of(all_.begin(), all_.end(), same))
    all_.push_back({&loop, caf::intrusive_ptr<tcp_scribe>(connection), clock::now()});
}

void watched_connections::forget(tcp_scribe* connection) {
  for (auto& each : all_)
    if (each.connection == connection) forgotten_.push_back(std::move(each.connection));
  has_gaps_ = true;
}

void watched_connections::forget_all(const event_loop& of) {
  for (auto& each : all_)
    if (each.loop == &of) each.connection.reset();
  has_gaps_ = true;
  forgotten_.clear();
}

/// The loop uses indices, because a connection that is polled may call add() and forget().
bool watched_connections::look(std::vector<event_loop*>& ended) {
  if (all_.empty()) return false;
  bool any = false;
  for (std::size_t i = 0; i < all_.size(); ++i) {
    if (!all_[i].connection || !all_[i].connection->has_news()) continue;
    const auto connection = all_[i].connection;
    auto& loop = *all_[i].loop;
    if (connection->look()) {
      all_[i].had_traffic = clock::now();
      any = true;
    }
    loop.settle();
    if (loop.ended() && std::find(ended.begin(), ended.end(), &loop) == ended.end()) ended.push_back(&loop);
  }
  forgotten_.clear();
  if (std::exchange(has_gaps_, false)) std::erase_if(all_, [](const watched& each) { return !each.connection; });
  drop_quiet();
  return any;
}

bool watched_connections::may_sleep() {
  forgotten_.clear();
  const auto may = [](const watched& each) { return !each.connection || each.connection->may_sleep(); };
  return std::all_of(all_.begin(), all_.end(), may);
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
