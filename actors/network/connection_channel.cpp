// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/network/connection_channel.hpp>

#include <sys/socket.h>
#include <array>
#include <cassert>
#include <cerrno>
#include <utility>

#include <troupe/messages/expect.hpp>

namespace troupe::network {

void connection_channel::expect(int connection) {
  if (state_ != state::searching) return;
  listener_ = channel_listener::open(connection);
  searches_left_ = searches_of_caller;
  if (!listener_) give_up();
}

/// The called end searches only once, when the first bytes of the calling end have come. One search is enough, because the
/// calling end opens its listener before it sends these bytes.
std::optional<std::uint64_t> connection_channel::search(int connection, std::function<bool()> neighbour) {
  assert(state_ == state::searching);
  neighbour_ = std::move(neighbour);
  --searches_left_;
  auto found = listener_ ? listener_->answer() : channel_listener::connect(connection);
  if (found.channel)
    open(std::move(found));
  else if (searches_left_ == 0)
    give_up();
  return state_ == state::open ? std::optional(process_beyond(bell_)) : std::nullopt;
}

void connection_channel::open(channel_with_bell found) {
  channel_ = std::move(found.channel);
  bell_ = std::move(found.bell);
  listener_.reset();
  state_ = state::open;
}

void connection_channel::give_up() {
  listener_.reset();
  state_ = state::absent;
}

void connection_channel::cut() {
  TROUPE_EXPECT(state_ == state::open);
  state_ = state::cut;
}

ssize_t connection_channel::read(const iovec& first, const iovec& second) {
  std::size_t all = 0;
  for (const auto& to : {first, second}) {
    if (to.iov_len == 0 || !reads()) break;
    const auto taken = channel_->incoming.read(static_cast<char*>(to.iov_base), to.iov_len);
    if (!taken) {
      errno = EPROTO;
      return -1;
    }
    all += *taken;
  }
  if (all == 0) {
    errno = EAGAIN;
    return -1;
  }
  moved_ += all;
  if (channel_->incoming.has_to_wake_writer()) ring();
  return static_cast<ssize_t>(all);
}

ssize_t connection_channel::write(const char* from, std::size_t bytes, bool) {
  assert(writes());
  const auto put = state_ == state::open ? channel_->outgoing.write(from, bytes) : std::nullopt;
  if (!put || *put == 0) {
    errno = put ? EAGAIN : EPIPE;
    return -1;
  }
  moved_ += *put;
  if (channel_->outgoing.has_to_wake_reader()) ring();
  return static_cast<ssize_t>(*put);
}

bool connection_channel::take_rings() const {
  assert(channel_);
  std::array<char, 64> rings;
  const auto came = ::recv(bell_.get(), rings.data(), rings.size(), MSG_DONTWAIT);
  return came > 0 || (came < 0 && (errno == EAGAIN || errno == EINTR));
}

/// If the socket is full, this ring is lost. The other end wakes all the same, because it has earlier rings to read.
void connection_channel::ring() const {
  if (neighbour_ && neighbour_()) return;
  const char any = 0;
  [[maybe_unused]] const auto sent = ::send(bell_.get(), &any, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace troupe::network
