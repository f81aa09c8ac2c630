// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/network/transport.hpp>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <cerrno>
#include <string>
#include <utility>

#include <troupe/actors/support/machine_address.hpp>

namespace troupe::network {

namespace {

std::unique_ptr<gate::endpoint> wire_of(int socket, std::unique_ptr<gate::tls_session> secured) {
  if (secured) return secured;
  return std::make_unique<gate::socket_endpoint>(socket);
}

/// Pacing, as of BBR, takes up to half of the rate between processes of one machine, and has no use there.
void stop_pacing_on_loopback(int socket, const std::string& there) {
  if (there.starts_with("127.") || there.starts_with("[::1]")) ::setsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
}

}  // namespace

transport::transport(int socket, std::unique_ptr<gate::tls_session> secured, bool shares_memory)
    : socket_(socket),
      there_(support::other_end_for_text(socket)),
      secured_(secured.get()),
      wire_(wire_of(socket, std::move(secured))),
      memory_(shares_memory) {
  stop_pacing_on_loopback(socket, there_);
}

ssize_t transport::read(const iovec& first, const iovec& second) {
  const auto came = wire_->read(first, second);
  if (came > 0) memory_.count_received(static_cast<std::size_t>(came));
  return came;
}

std::size_t transport::read_memory(const iovec& to) {
  const auto came = memory_.read(to, {});
  if (came < 0 && errno != EAGAIN) end();
  return came < 0 ? 0 : static_cast<std::size_t>(came);
}

ssize_t transport::write(const char* from, std::size_t bytes, bool goes_on) {
  memory_.move_outgoing();
  gate::endpoint& way = memory_.writes() ? static_cast<gate::endpoint&>(memory_) : *wire_;
  using state = connection_channel::state;
  const bool may_move = memory_.now() == state::searching || memory_.now() == state::open;
  const auto went = way.write(from, bytes, goes_on && !may_move);
  if (went > 0) memory_.count_sent(static_cast<std::size_t>(went));
  return went;
}

}  // namespace troupe::network
