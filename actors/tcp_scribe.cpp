// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/tcp_scribe.hpp>

#include <sys/socket.h>
#include <sys/uio.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <caf/io/network/default_multiplexer.hpp>
#include <caf/io/network/native_socket.hpp>

#include <troupe/actors/shared_multiplexer.hpp>

namespace troupe {

using caf::io::receive_policy;
using caf::io::receive_policy_flag;
using caf::io::network::operation;

namespace {

bool may_work_later(int problem) { return problem == EAGAIN || problem == EWOULDBLOCK || problem == EINTR; }

}  // namespace

tcp_scribe::tcp_scribe(shared_multiplexer& network, caf::io::network::native_socket socket)
    : scribe(caf::io::network::conn_hdl_from_socket(socket)), network_(network), stream_(network, socket, *this) {}

void tcp_scribe::configure_read(receive_policy::config config) {
  stream_.wanted = config;
  if (!std::exchange(launched_, true)) stream_.start();
}

void tcp_scribe::flush() {
  if (!stream_.added.empty() && !stream_.waits()) catch_up_soon();
}

void tcp_scribe::graceful_shutdown() {
  stream_.graceful_shutdown();
  detach(&network_, false);
}

void tcp_scribe::remove_from_loop() { stream_.stop(); }

void tcp_scribe::add_to_loop() {
  stream_.start();
  if (stream_.has_ahead()) catch_up_soon();
}

std::string tcp_scribe::addr() const {
  const auto found = caf::io::network::remote_addr_of_fd(stream_.fd());
  return found ? *found : std::string{};
}

std::uint16_t tcp_scribe::port() const {
  const auto found = caf::io::network::remote_port_of_fd(stream_.fd());
  return found ? *found : std::uint16_t{0};
}

void tcp_scribe::catch_up_soon() {
  if (!std::exchange(will_catch_up_, true)) network_.catch_up_soon(this);
}

void tcp_scribe::catch_up() {
  will_catch_up_ = false;
  if (stream_.has_ahead()) stream_.consume();
  if (!stream_.waits()) stream_.write_first();
}

tcp_scribe::stream::stream(shared_multiplexer& network, caf::io::network::native_socket socket, tcp_scribe& scribe)
    : event_handler(network, socket), wanted(receive_policy::at_most(1024)), scribe_(scribe), ahead_(ahead_bytes) {}

void tcp_scribe::stream::start() {
  wants_ = true;
  if (!reader_) {
    reader_.reset(&scribe_);
    if (collected_ == 0) want_next();
  }
  activate();
}

void tcp_scribe::stream::stop() {
  wants_ = false;
  passivate();
}

void tcp_scribe::stream::handle_event(operation op) {
  switch (op) {
    case operation::read: return read();
    case operation::write: return write();
    case operation::propagate_error:
      if (reader_) scribe_.io_failure(&backend(), operation::read);
      if (writer_) scribe_.io_failure(&backend(), operation::write);
  }
}

void tcp_scribe::stream::removed_from_loop(operation op) {
  if (op == operation::read) reader_.reset();
  if (op == operation::write) writer_.reset();
}

void tcp_scribe::stream::graceful_shutdown() {
  if (std::exchange(closes_, true)) return;
  if (added.empty() && leaving_.empty()) caf::io::network::shutdown_write(fd());
}

/// What the broker wants goes where it takes it from, what comes behind that is kept.
void tcp_scribe::stream::read() {
  if (!consume()) return;
  for (int i = 0; i < most_reads; ++i) {
    const std::size_t room = part.size() - collected_;
    const std::array<iovec, 2> to = {iovec{part.data() + collected_, room}, iovec{ahead_.data(), ahead_.size()}};
    const auto came = ::readv(fd(), to.data(), to.size());
    if (came <= 0) {
      if (came < 0 && may_work_later(errno)) return;
      scribe_.io_failure(&backend(), operation::read);
      stop();
      return;
    }
    const auto bytes = static_cast<std::size_t>(came);
    collected_ += std::min(bytes, room);
    ahead_begin_ = 0;
    ahead_end_ = bytes - std::min(bytes, room);
    if (!consume() || bytes < room + ahead_.size()) return;
  }
}

bool tcp_scribe::stream::consume() {
  while (reader_ && wants_) {
    const auto more = std::min(part.size() - collected_, ahead_end_ - ahead_begin_);
    std::memcpy(part.data() + collected_, ahead_.data() + ahead_begin_, more);
    collected_ += more;
    ahead_begin_ += more;
    if (collected_ < threshold_) return true;
    const bool goes_on = scribe_.consume(&backend(), part.data(), std::exchange(collected_, 0));
    want_next();
    if (!goes_on) stop();
  }
  return false;
}

void tcp_scribe::stream::want_next() {
  const auto [flag, bytes] = wanted;
  const auto least = std::max<std::size_t>(1, bytes);
  part.resize(flag == receive_policy_flag::at_least ? least + std::max<std::size_t>(100, least / 10) : least);
  threshold_ = flag == receive_policy_flag::at_most ? 1 : least;
}

tcp_scribe::stream::sent tcp_scribe::stream::send() {
  for (int i = 0;; ++i) {
    if (written_ == leaving_.size()) {
      written_ = 0;
      leaving_.clear();
      if (added.empty()) break;
      leaving_.swap(added);
    }
    if (i == most_writes) return sent::some;
    const auto went = ::send(fd(), leaving_.data() + written_, leaving_.size() - written_, MSG_NOSIGNAL);
    if (went < 0) return may_work_later(errno) ? sent::some : sent::failed;
    written_ += static_cast<std::size_t>(went);
    if (ack_writes())
      scribe_.data_transferred(&backend(), static_cast<std::size_t>(went), leaving_.size() - written_ + added.size());
  }
  if (closes_) caf::io::network::shutdown_write(fd());
  return sent::all;
}

void tcp_scribe::stream::write_first() {
  if (send() == sent::all) return;
  waits_ = true;  // also if it failed: the event loop finds the same, and may tell
  writer_.reset(&scribe_);
  backend().add(operation::write, fd(), this);
}

void tcp_scribe::stream::write() {
  const auto how = send();
  if (how == sent::some) return;
  if (how == sent::failed) scribe_.io_failure(&backend(), operation::write);
  waits_ = false;
  backend().del(operation::write, fd(), this);
}

}  // namespace troupe
