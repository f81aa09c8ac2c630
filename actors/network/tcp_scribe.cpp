// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/network/tcp_scribe.hpp>

#include <sys/socket.h>
#include <sys/uio.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <caf/io/network/default_multiplexer.hpp>
#include <caf/io/network/native_socket.hpp>

#include <troupe/actors/network/connection_host.hpp>

namespace troupe::network {

using caf::io::receive_policy;
using caf::io::receive_policy_flag;
using caf::io::network::operation;

namespace {

bool may_work_later(int problem) { return problem == EAGAIN || problem == EWOULDBLOCK || problem == EINTR; }

}  // namespace

tcp_scribe::tcp_scribe(caf::io::network::default_multiplexer& network, connection_host& host,
                       caf::io::network::native_socket socket)
    : scribe(caf::io::network::conn_hdl_from_socket(socket)), network_(network), host_(host), stream_(network, socket, *this) {}

void tcp_scribe::configure_read(receive_policy::config config) {
  stream_.wanted = config;
  if (!std::exchange(launched_, true)) stream_.start();
}

void tcp_scribe::flush() {
  stream_.leaving.seal();
  if (!stream_.leaving.empty() && !stream_.waits()) catch_up_soon();
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
  if (!std::exchange(will_catch_up_, true)) host_.catch_up_soon(this);
}

void tcp_scribe::catch_up() {
  will_catch_up_ = false;
  if (stream_.has_ahead()) stream_.consume();
  if (!stream_.waits()) stream_.write_first();
}

tcp_scribe::stream::bell::bell(stream& of, support::owned_descriptor socket)
    : event_handler(of.backend(), socket.release()), of_(of), held_(&of.scribe_) {
  activate();
}

/// Who sleeps finds one, or what it has not read yet.
void tcp_scribe::stream::bell::ring() const {
  const char any = 0;
  [[maybe_unused]] const auto sent = ::send(fd(), &any, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void tcp_scribe::stream::bell::leave_loop() {
  is_cut_ = true;
  passivate();
  if (eventbf() == 0) held_.reset();  // it was not in the loop yet
}

void tcp_scribe::stream::bell::handle_event(operation) {
  std::array<char, 64> rings;
  const auto came = ::recv(fd(), rings.data(), rings.size(), MSG_DONTWAIT);
  of_.woken(came == 0 || (came < 0 && !may_work_later(errno)));
}

void tcp_scribe::stream::bell::removed_from_loop(operation) { const auto last = std::move(held_); }

tcp_scribe::stream::stream(caf::io::network::default_multiplexer& network, caf::io::network::native_socket socket,
                           tcp_scribe& scribe)
    : event_handler(network, socket),
      wanted(receive_policy::at_most(1024)),
      scribe_(scribe),
      ahead_(ahead_bytes),
      lane_chances_(scribe.host_.shares_memory() ? 1 : 0) {}

void tcp_scribe::stream::start() {
  wants_ = true;
  if (lane_ && !bell_->is_cut()) scribe_.host_.watch(&scribe_);
  if (!reader_) {
    reader_.reset(&scribe_);
    if (collected_ == 0) want_next();
  }
  activate();
}

void tcp_scribe::stream::stop() {
  wants_ = false;
  passivate();
  if (!reader_ || (eventbf() & caf::io::network::input_mask) != 0) return;
  scribe_.host_.catch_up_soon(&scribe_);  // the loop was to have it and will not: it says nothing, but looks once more
  reader_.reset();
}

void tcp_scribe::stream::handle_event(operation op) {
  switch (op) {
    case operation::read:
      return read();
    case operation::write:
      return write();
    case operation::propagate_error:
      consume_last();
      leave_lane();
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
  if (!leaving.empty()) return;
  caf::io::network::shutdown_write(fd());
  leave_lane();
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
      consume_last();
      if (wants_) fail(operation::read);
      return;
    }
    if (reads_memory_) return fail(operation::read);
    const auto bytes = static_cast<std::size_t>(came);
    received_ += bytes;
    collected_ += std::min(bytes, room);
    ahead_begin_ = 0;
    ahead_end_ = bytes - std::min(bytes, room);
    if (lane_chances_ > 0) look_for_lane();
    const bool goes_on = consume();
    if (reads_memory() && !bell_->is_cut()) scribe_.host_.watch(&scribe_);  // for what was there too early
    if (!goes_on || bytes < room + ahead_.size()) return;
  }
}

void tcp_scribe::stream::fail(operation op) {
  scribe_.io_failure(&backend(), op);
  stop();
  leave_lane();
}

bool tcp_scribe::stream::consume() {
  std::size_t from_memory = 0;
  while (reader_ && wants_) {
    const auto more = std::min(part.size() - collected_, ahead_end_ - ahead_begin_);
    std::memcpy(part.data() + collected_, ahead_.data() + ahead_begin_, more);
    collected_ += more;
    ahead_begin_ += more;
    if (!has_ahead() && from_memory < most_from_memory) {
      const auto taken = take_from_memory(part.data() + collected_, part.size() - collected_);
      collected_ += taken;
      from_memory += taken;
    }
    if (collected_ < threshold_) return true;
    const bool goes_on = scribe_.consume(&backend(), part.data(), std::exchange(collected_, 0));
    want_next();
    if (!goes_on) stop();
  }
  return false;
}

/// What the other end left in shared memory.
void tcp_scribe::stream::consume_last() {
  for (auto left = ring_writer::capacity / most_from_memory + 1; left > 0 && consume() && reads_memory(); --left)
    if (lane_->incoming.is_empty()) return;
}

void tcp_scribe::stream::want_next() {
  const auto [flag, bytes] = wanted;
  const auto least = std::max<std::size_t>(1, bytes);
  const auto most = flag == receive_policy_flag::at_least ? least + std::max<std::size_t>(100, least / 10) : least;
  if (part.capacity() > 2 * std::max(peak_.add(most), kept_bytes)) part = std::vector<char>();
  part.resize(most);
  threshold_ = flag == receive_policy_flag::at_most ? 1 : least;
}

tcp_scribe::stream::sent tcp_scribe::stream::send() {
  for (int i = 0; !leaving.empty(); ++i) {
    if (i == most_writes) return sent::some;
    if (lane_ && !writes_memory() && lane_->is_joined()) lane_->outgoing.begin(sent_);
    const auto next = leaving.front();
    const auto went =
      writes_memory() ? put_into_memory(next.data(), next.size()) : ::send(fd(), next.data(), next.size(), MSG_NOSIGNAL);
    if (went < 0) return may_work_later(errno) ? sent::some : sent::failed;
    leaving.pop(static_cast<std::size_t>(went));
    sent_ += static_cast<std::size_t>(went);
    if (ack_writes()) scribe_.data_transferred(&backend(), static_cast<std::size_t>(went), leaving.waiting());
  }
  if (closes_) {
    caf::io::network::shutdown_write(fd());
    leave_lane();
  }
  return sent::all;
}

void tcp_scribe::stream::write_first() {
  const auto how = send();
  waits_ = how != sent::all;  // also if it failed: the event loop finds the same, and may tell
  wait_for_room(how);
  if (!waits_ || waits_for_room_) return;
  writer_.reset(&scribe_);
  backend().add(operation::write, fd(), this);
}

void tcp_scribe::stream::write() {
  const auto how = send();
  wait_for_room(how);
  if (how == sent::some && !waits_for_room_) return;
  if (how == sent::failed) {
    consume_last();
    fail(operation::write);
  }
  waits_ = waits_for_room_;
  backend().del(operation::write, fd(), this);
}

void tcp_scribe::stream::wait_for_room(sent how) {
  waits_for_room_ = how == sent::some && writes_memory();
  if (waits_for_room_) scribe_.host_.watch(&scribe_);
}

void tcp_scribe::stream::expect_lane() {
  if (lane_chances_ > 0) door_ = lane_door::open(fd());
  lane_chances_ = door_ ? reads_until_lane : 0;
}

/// Who was called does so at the caller's first words: it has opened its door by then.
void tcp_scribe::stream::look_for_lane() {
  --lane_chances_;
  auto found = door_ ? door_->answer() : lane_door::knock(fd());
  if (found.lane) {
    lane_ = std::move(found.lane);
    bell_ = std::make_unique<bell>(*this, std::move(found.bell));
    lane_chances_ = 0;
    scribe_.host_.note_lane(fd(), true);
    scribe_.host_.watch(&scribe_);
  }
  if (lane_chances_ == 0) door_.reset();
}

void tcp_scribe::stream::leave_lane() {
  if (!bell_) return;
  bell_->leave_loop();
  scribe_.host_.forget(&scribe_);
}

bool tcp_scribe::stream::reads_memory() {
  if (!reads_memory_ && lane_) reads_memory_ = lane_->incoming.has_begun_after(received_);
  return reads_memory_;
}

/// Where the other end's counters can't be, the event loop finds that the connection is over.
std::size_t tcp_scribe::stream::take_from_memory(char* to, std::size_t bytes) {
  if (bytes == 0 || !reads_memory()) return 0;
  const auto taken = lane_->incoming.read(to, bytes);
  if (!taken) ::shutdown(fd(), SHUT_RDWR);
  if (!taken || *taken == 0) return 0;
  moved_ += *taken;
  if (lane_->incoming.has_to_wake_writer()) bell_->ring();
  return *taken;
}

/// As send(2).
ssize_t tcp_scribe::stream::put_into_memory(const char* from, std::size_t bytes) {
  const auto put = bell_->is_cut() ? std::nullopt : lane_->outgoing.write(from, bytes);
  if (!put || *put == 0) {
    errno = put ? EAGAIN : EPIPE;
    return -1;
  }
  moved_ += *put;
  if (lane_->outgoing.has_to_wake_reader()) bell_->ring();
  return static_cast<ssize_t>(*put);
}

bool tcp_scribe::stream::look() {
  lane_->incoming.wake();
  if (lane_->incoming.is_empty() && !waits_for_room_) return false;
  const auto before = moved_;
  consume();
  if (waits_for_room_) write_first();
  return moved_ != before;
}

/// One that was halted needs to be woken for room alone. What is in memory too early waits for TCP, which brings events.
bool tcp_scribe::stream::may_sleep() {
  const bool reads = !wants_ || lane_->incoming.may_sleep() || !reads_memory();
  const bool writes = !waits_for_room_ || lane_->outgoing.may_sleep();
  return reads && writes;
}

void tcp_scribe::stream::woken(bool for_good) {
  if (for_good)
    leave_lane();
  else if (!bell_->is_cut())
    scribe_.host_.watch(&scribe_);
  look();
}

}  // namespace troupe::network
