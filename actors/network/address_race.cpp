// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/network/address_race.hpp>

#include <algorithm>
#include <deque>
#include <utility>

#include <caf/sec.hpp>

#include <troupe/messages/caf_error.hpp>

namespace troupe::network {

std::vector<const addrinfo*> by_turns(const addrinfo* all) {
  std::deque<const addrinfo*> same;
  std::deque<const addrinfo*> other;
  for (const auto* each = all; each != nullptr; each = each->ai_next)
    (each->ai_family == all->ai_family ? same : other).push_back(each);
  std::vector<const addrinfo*> result;
  for (bool first = true; !same.empty() || !other.empty(); first = !first) {
    auto& from = (first && !same.empty()) || other.empty() ? same : other;
    result.push_back(from.front());
    from.pop_front();
  }
  return result;
}

address_race::verdict address_race::begin(support::host_lookup found, clock::time_point now) {
  found_ = std::move(found);
  order_ = by_turns(found_.addresses.get());
  return begin_next(now);
}

address_race::verdict address_race::begin_next(clock::time_point now) {
  if (next_ == order_.size()) return probes_.empty() ? verdict::nobody : verdict::undecided;
  next_at_ = now + head_start;
  probes_.push_back(std::make_unique<address_probe>(gate_));
  const auto how = probes_.back()->begin(*order_[next_++]);
  return take(probes_.size() - 1, how, now);
}

address_race::verdict address_race::look(clock::time_point now) {
  return now < next_look() ? verdict::undecided : begin_next(now);
}

address_race::verdict address_race::go_on(int socket, clock::time_point now) {
  const auto found = std::find_if(probes_.begin(), probes_.end(), [=](const auto& each) { return each->socket() == socket; });
  if (found == probes_.end()) return verdict::undecided;
  return take(static_cast<std::size_t>(found - probes_.begin()), (*found)->go_on(), now);
}

address_race::verdict address_race::take(std::size_t which, verdict how, clock::time_point now) {
  if (how == verdict::undecided) return how;
  auto decided = std::move(probes_[which]);
  probes_.erase(probes_.begin() + static_cast<std::ptrdiff_t>(which));
  if (how == verdict::node) winner_ = std::move(decided);
  if (how != verdict::nobody) return how;
  if (!loser_ || loser_->what() <= decided->what()) loser_ = std::move(decided);
  return begin_next(now);
}

caf::error address_race::problem() const {
  // A join tries again after a temporary failure of the look-up.
  if (found_.failed()) return make_error(found_.temporary ? errc::unknown_peer : errc::misuse, found_.problem);
  return loser_ ? loser_->problem() : caf::error(caf::sec::cannot_connect_to_node);
}

}  // namespace troupe::network
