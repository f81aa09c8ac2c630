// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/network/address_race.hpp>

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <deque>
#include <system_error>

#include <caf/sec.hpp>

#include <troupe/actors/support/machine_address.hpp>
#include <troupe/messages/caf_error.hpp>

namespace troupe::network {

constexpr char tls_alert = 0x15;
constexpr auto wants_certificate =
  " talks only to nodes with a certificate of its cluster; start this one with --certificates and a kit that `troupe certs` "
  "made";

address_probe::verdict address_probe::begin(const addrinfo& to) {
  socket_ = support::owned_descriptor(::socket(to.ai_family, to.ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, to.ai_protocol));
  if (!socket_ || (connect(socket_.get(), to.ai_addr, to.ai_addrlen) != 0 && errno != EINPROGRESS)) return failed(errno);
  return verdict::undecided;
}

address_probe::verdict address_probe::go_on() { return connected_ ? hear() : connect_done(); }

short address_probe::events() const noexcept { return !connected_ ? POLLOUT : session_ ? events_ : POLLIN; }

std::string address_probe::reached() const {
  TROUPE_EXPECT(socket_);
  sockaddr_storage other{};
  socklen_t size = sizeof other;
  if (getpeername(socket_.get(), reinterpret_cast<sockaddr*>(&other), &size) != 0) return {};
  return support::numeric_address(other);
}

address_probe::obstacle address_probe::what() const noexcept {
  if (!refusal_.why.empty() && !refusal_.has_ended && !refusal_.may_pass) return obstacle::refused;
  if (last_problem_ == ECONNRESET) return obstacle::hung_up;
  if (last_problem_ == ECONNREFUSED) return obstacle::nobody_listens;
  return last_problem_ == EAFNOSUPPORT ? obstacle::no_such_network : obstacle::no_way;
}

caf::error address_probe::problem() const {
  TROUPE_EXPECT(!socket_);
  switch (what()) {
    case obstacle::refused:
      return make_error(errc::refused, refusal_.why);
    case obstacle::hung_up:
      return caf::make_error(caf::sec::disconnect_during_handshake, refusal_.why);
    case obstacle::nobody_listens:
      return caf::sec::cannot_connect_to_node;
    default:
      return make_error(errc::unknown_peer, "no way to the host: " + std::generic_category().message(last_problem_));
  }
}

address_probe::verdict address_probe::failed(int problem) {
  session_.reset();  // before the socket closes, because a new connection may get the same descriptor number
  socket_ = {};
  last_problem_ = problem;
  return verdict::nobody;
}

address_probe::verdict address_probe::connect_done() {
  int problem = 0;
  socklen_t size = sizeof problem;
  connected_ = getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &problem, &size) == 0 && problem == 0;
  if (!connected_) return failed(problem);
  there_ = support::other_end_for_text(socket_.get());
  return ask_gate();
}

address_probe::verdict address_probe::ask_gate() {
  if (const auto refused = gate_.check(socket_.get(), gate::end::calling)) return refuse(*refused);
  if (!gate_.proof()) return verdict::undecided;
  session_ = std::make_unique<gate::tls_session>(gate_.proof(), socket_.get(), gate::end::calling, there_);
  return shake_hands();
}

address_probe::verdict address_probe::shake_hands() {
  using progress = gate::tls_session::progress;
  const auto how = session_->shake_hands();
  if (how == progress::failed) {
    auto why = session_->problem();
    why.why.insert(0, "the program at " + there_ + ": ");
    return refuse(why);
  }
  events_ = how == progress::wants_to_write ? POLLOUT : POLLIN;
  return verdict::undecided;
}

address_probe::verdict address_probe::refuse(const gate::refusal& why) {
  refusal_ = why;
  return failed(ECONNRESET);
}

// Looks at the first bytes of the called end. The called end sends first: CAF's handshake, which begins with three bytes that
// are 0 (the kind of the message, and two bytes of padding). But a node with certificates waits until the calling end has begun
// the handshake of TLS. If the calling end begins none, that node sends an alert of TLS.
address_probe::verdict address_probe::hear() {
  std::array<char, 3> first{};
  if (session_ && session_->shake_hands() != gate::tls_session::progress::proven) return shake_hands();
  const auto size =
    session_ ? session_->peek({first.data(), first.size()}) : recv(socket_.get(), first.data(), first.size(), MSG_PEEK);
  if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return verdict::undecided;
  if (size < 0 && session_ && !session_->problem().why.empty()) return shake_hands();
  if (size <= 0) return failed(ECONNRESET);
  if (!session_ && first[0] == tls_alert) return refuse({"the node at " + there_ + wants_certificate});
  return std::all_of(first.begin(), first.begin() + size, [](char c) { return c == 0; }) ? verdict::node : verdict::stranger;
}

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
  TROUPE_EXPECT(!winner_);
  // unknown_peer: a later look-up may succeed. misuse: every look-up would fail.
  if (found_.failed()) return make_error(found_.temporary ? errc::unknown_peer : errc::misuse, found_.problem);
  return loser_ ? loser_->problem() : caf::error(caf::sec::cannot_connect_to_node);
}

}  // namespace troupe::network
