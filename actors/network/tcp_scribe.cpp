// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/network/tcp_scribe.hpp>

#include <sys/socket.h>
#include <sys/uio.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include <caf/io/basp_broker.hpp>
#include <caf/io/network/default_multiplexer.hpp>
#include <caf/io/network/native_socket.hpp>

#include <troupe/actors/network/connection_host.hpp>
#include <troupe/actors/support/machine_address.hpp>
#include <troupe/messages/sender_check.hpp>

namespace troupe::network {

using caf::io::receive_policy;
using caf::io::receive_policy_flag;
using caf::io::network::operation;

namespace {

bool may_work_later(int problem) { return problem == EAGAIN || problem == EWOULDBLOCK || problem == EINTR; }

}  // namespace

tcp_scribe::tcp_scribe(caf::io::network::default_multiplexer& network, connection_host& host,
                       support::owned_descriptor&& socket, gate::end which, std::unique_ptr<gate::tls_session> secured)
    : scribe(caf::io::network::conn_hdl_from_socket(socket.get())),
      network_(network),
      host_(host),
      stream_(network, std::move(socket), *this, which, std::move(secured)) {}

/// The scribe gets its broker after its construction, and before the broker's first call.
void tcp_scribe::meet_broker() {
  if (std::exchange(has_met_broker_, true)) return;
  basp_ = dynamic_cast<caf::io::basp_broker*>(parent());
  if (basp_ != nullptr) stream_.expect_messages();
}

void tcp_scribe::configure_read(receive_policy::config config) {
  meet_broker();
  stream_.wanted = config;
  if (stream_.launch() && stream_.has_unread()) read_on_later();
}

void tcp_scribe::flush() {
  meet_broker();
  stream_.note_questions();
  stream_.leaving.seal();
  stream_.note_waiting();
  if (!stream_.leaving.empty() && !stream_.waits()) catch_up_soon();
}

void tcp_scribe::graceful_shutdown() {
  stream_.graceful_shutdown();
  detach(&network_, false);
}

void tcp_scribe::remove_from_loop() { stream_.stop(); }

void tcp_scribe::add_to_loop() {
  stream_.start();
  if (stream_.has_ahead() || stream_.has_unread()) catch_up_soon();
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

void tcp_scribe::read_on_later() {
  if (!std::exchange(will_read_on_, true)) host_.read_on_later(this);
}

void tcp_scribe::catch_up() {
  will_catch_up_ = false;
  stream_.guarded([this] {
    if (stream_.has_ahead()) stream_.consume();
    if (stream_.has_unread()) read_on_later();  // not now: what it reads may make it catch up again
    if (!stream_.waits()) stream_.write_now();
  });
}

void tcp_scribe::read_on() {
  will_read_on_ = false;
  stream_.guarded([this] { stream_.read_rest(); });
}

tcp_scribe::stream::bell_handler::bell_handler(stream& of)
    : event_handler(of.backend(), of.channel_.bell()), of_(of), held_(&of.scribe_) {
  activate();
}

void tcp_scribe::stream::bell_handler::leave_loop() {
  passivate();
  if (eventbf() == 0) held_.reset();  // the event loop has not added this handler yet, and won't call removed_from_loop()
}

void tcp_scribe::stream::bell_handler::removed_from_loop(operation) { const auto last = std::move(held_); }

tcp_scribe::stream::stream(caf::io::network::default_multiplexer& network, support::owned_descriptor&& socket,
                           tcp_scribe& scribe, gate::end which, std::unique_ptr<gate::tls_session> secured)
    : event_handler(network, socket.release()),
      wanted(receive_policy::at_most(1024)),
      scribe_(scribe),
      which_(which),
      secured_(std::move(secured)),
      there_(support::other_end_for_text(fd())),
      ahead_(ahead_bytes),
      channel_(scribe.host_.shares_memory()) {
  if (secured_ && secured_->is_proven()) meet_sender();
}

bool tcp_scribe::stream::launch() {
  if (phase_ != phase::created) return false;
  phase_ = phase::open;
  start();
  return true;
}

void tcp_scribe::stream::start() {
  reading_ = reading::wanted;
  if (channel_.is_open()) watch_channel();
  if (!reader_) {
    reader_.reset(&scribe_);
    if (collected_ == 0 && !fragments_.is_within()) want_next();
  }
  activate();
}

void tcp_scribe::stream::stop() {
  reading_ = reading::halted;
  passivate();
  if (!reader_ || (eventbf() & caf::io::network::input_mask) != 0) return;
  // The event loop has not added this stream for reading yet, so removed_from_loop() will not be called. reader_ may be the
  // last owner of the scribe: catch_up_soon() holds the scribe until the current event is over.
  scribe_.host_.catch_up_soon(&scribe_);
  reader_.reset();
}

void tcp_scribe::stream::handle_event(operation op) {
  guarded([this, op] { handle(op); });
}

/// Where memory is short, this connection ends, and the event loop goes on with the others.
template <class Work>
void tcp_scribe::stream::guarded(Work work) noexcept {
  try {
    work();
  } catch (const std::exception& problem) {
    end_wrong("what this node could not take: ", problem.what());
  }
}

void tcp_scribe::stream::handle(operation op) {
  switch (op) {
    case operation::read:
      return read();
    case operation::write:
      return write();
    case operation::propagate_error:
      consume_last();
      cut_channel();
      if (reader_) scribe_.io_failure(&backend(), operation::read);
      if (writer_) scribe_.io_failure(&backend(), operation::write);
  }
}

void tcp_scribe::stream::removed_from_loop(operation op) {
  if (op == operation::read) reader_.reset();
  if (op == operation::write) writer_.reset();
}

void tcp_scribe::stream::graceful_shutdown() {
  if (phase_ == phase::closing || phase_ == phase::closed) return;
  phase_ = phase::closing;
  if (leaving.empty() && !(secured_ && secured_->has_unsent())) finish();
}

void tcp_scribe::stream::finish() {
  phase_ = phase::closed;
  caf::io::network::shutdown_write(fd());
  cut_channel();
}

void tcp_scribe::stream::fail(operation op) {
  scribe_.io_failure(&backend(), op);
  stop();
  cut_channel();
}

ssize_t tcp_scribe::stream::receive(const iovec& first, const iovec& second) {
  if (secured_) return secured_->read(first, second);
  const std::array<iovec, 2> to = {first, second};
  return ::readv(fd(), to.data(), to.size());
}

void tcp_scribe::stream::expect_messages() {
  if (fragments_.has_begun()) return;
  fragments_.begin(message_rules(which_, scribe_.host_.own()));
  if (sender_) tell_whose();
}

/// Remembers what is asked, because only the node that is asked may answer.
void tcp_scribe::stream::note_questions() {
  if (sender_ && fragments_.has_begun()) leaving.for_each_new([this](const message_head& next) { fragments_.leaves(next); });
}

void tcp_scribe::stream::meet_sender() {
  sender_.emplace(scribe_.host_.introduced(), secured_->other(), scribe_.host_.policy());
  tell_whose();
}

void tcp_scribe::stream::tell_whose() { fragments_.meet(scribe_.host_.ids(), secured_->other(), scribe_.host_.policy()); }

/// CAF reads the message, and with it who says to have sent it, before this returns.
bool tcp_scribe::stream::consume_as_sent(std::size_t bytes) {
  const auto& head = fragments_.head();
  const reading_from sender(sender_ ? &*sender_ : nullptr, {head.source, caf::make_message_id(head.message).integer_value()});
  const bool goes_on = scribe_.consume(&backend(), part.data(), bytes);
  if (goes_on && sender_ && scribe_.basp_ != nullptr && !scribe_.detached())  // a broker that has ended has no notes any more
    if (const auto why = notes_.read(*scribe_.basp_, scribe_.hdl(), fragments_.owed()); !why.empty()) end_wrong(why);
  return goes_on;
}

/// Goes on with the handshake of TLS. True: both ends have proven who they are.
bool tcp_scribe::stream::prove() {
  using progress = gate::tls_session::progress;
  switch (secured_->shake_hands()) {
    case progress::proven:
      meet_sender();
      if (!leaving.empty() && !waits()) write_now();
      return true;
    case progress::failed:
      if (!secured_->problem().has_ended) scribe_.host_.note_wrong(there_, "what proves nothing: " + secured_->problem().why);
      fail(operation::read);
      return false;
    case progress::wants_to_write:
      if (!waits()) wait_for_socket();
      return false;
    case progress::wants_to_read:
      break;
  }
  return false;
}

void tcp_scribe::stream::read_rest() {
  if (reader_ && reading_ == reading::wanted) read();
}

/// Reads into `part` the bytes that the broker wants, and into `ahead_` the bytes that follow them.
void tcp_scribe::stream::read() {
  if (secured_ && !sender_ && !prove()) return;
  if (!consume()) return;
  if (is_wrong_) return fail(operation::read);
  for (int i = 0; i < most_reads; ++i) {
    const std::size_t room = part.size() - collected_;
    const auto came = receive({part.data() + collected_, room}, {ahead_.data(), ahead_.size()});
    if (came <= 0) {
      if (came < 0 && may_work_later(errno)) return;
      if (secured_ && !secured_->problem().why.empty() && !secured_->problem().has_ended)
        scribe_.host_.note_wrong(there_, "what ends the connection: " + secured_->problem().why);
      consume_last();
      if (reading_ == reading::wanted) fail(operation::read);
      return;
    }
    if (channel_.has_read()) return fail(operation::read);  // no byte may come by TCP any more
    const auto bytes = static_cast<std::size_t>(came);
    channel_.count_received(bytes);
    collected_ += std::min(bytes, room);
    ahead_begin_ = 0;
    ahead_end_ = bytes - std::min(bytes, room);
    if (channel_.is_searching()) search_channel();
    const bool goes_on = consume();
    if (channel_.reads() && channel_.is_open()) watch_channel();  // memory may hold bytes that waited for these from TCP
    if (!goes_on || bytes < room + ahead_.size()) return;
  }
  if (has_unread()) scribe_.read_on_later();  // the socket may announce nothing more
}

bool tcp_scribe::stream::consume() {
  std::size_t from_memory = 0;
  while (reader_ && reading_ == reading::wanted && !is_wrong_) {
    const auto more = std::min(part.size() - collected_, ahead_end_ - ahead_begin_);
    std::memcpy(part.data() + collected_, ahead_.data() + ahead_begin_, more);
    collected_ += more;
    ahead_begin_ += more;
    if (!has_ahead() && from_memory < most_from_memory) {
      const auto taken = take_from_memory(part.data() + collected_, part.size() - collected_);
      collected_ += taken;
      from_memory += taken;
    }
    if (collected_ < threshold_) {
      if (collected_ < part.size()) return true;
      make_room();
      continue;
    }
    const bool goes_on = hand_on_part();
    if (is_wrong_) return true;
    want_next();
    if (!goes_on) stop();
  }
  return is_wrong_;
}

/// Hands the part that has come to the broker, or keeps it if it is a fragment. False: the broker wants no more.
bool tcp_scribe::stream::hand_on_part() {
  const auto bytes = std::exchange(collected_, 0);
  silence.reset();
  switch (fragments_.sort(part)) {
    case fragment_reader::outcome::for_broker:
      // The first message of the called end stays as CAF makes it: a calling end looks at it to see whether a node listens.
      if (fragments_.has_begun()) leaving.announce_reading();
      if (fragments_.other_end_reads()) leaving.split_large(scribe_.host_.unordered_sender());
      return consume_as_sent(bytes);
    case fragment_reader::outcome::kept:
      break;
    case fragment_reader::outcome::wrong:
      end_wrong(fragments_.problem());
  }
  return true;
}

/// Consumes the bytes that the other end left in shared memory.
void tcp_scribe::stream::consume_last() {
  for (auto left = ring_writer::capacity / most_from_memory + 1; left > 0 && consume() && channel_.reads(); --left)
    if (channel_.is_empty()) return;
}

/// Prepares `part` for the next bytes that the broker wants.
void tcp_scribe::stream::want_next() {
  if (fragments_.has_wish()) return want_fragment();
  const auto [flag, bytes] = wanted;
  const auto least = std::max<std::size_t>(1, bytes);
  const auto most = flag == receive_policy_flag::at_least ? least + std::max<std::size_t>(100, least / 10) : least;
  if (part.capacity() > 2 * std::max(peak_.add(most), kept_bytes)) part = std::vector<char>();
  wished_ = most;
  threshold_ = flag == receive_policy_flag::at_most ? 1 : least;
  make_room();
}

/// Prepares `part` for the next bytes of a message that comes in fragments.
void tcp_scribe::stream::want_fragment() {
  try {
    collected_ = fragments_.prepare(part);
    threshold_ = part.size();
    note_unfinished();
  } catch (const std::bad_alloc&) {
    end_wrong("a message in fragments, for which there is no memory");
  }
}

/// Makes `part` larger, up to what the broker wants. Memory that is reserved takes no room until bytes come.
void tcp_scribe::stream::make_room() {
  try {
    const auto next = std::min(wished_, std::max(first_room, 2 * part.size()));
    if (part.capacity() < next) part.reserve(std::min(wished_, std::max(most_reserved, 2 * part.size())));
    part.resize(next);
    note_unfinished();
  } catch (const std::bad_alloc&) {
    end_wrong("a message of " + std::to_string(wished_) + " bytes, for which there is no memory");
  }
}

/// Small messages do not count: a connection has room for them anyway.
void tcp_scribe::stream::note_unfinished() {
  if (!fragments_.may_hold(part.size() > first_room ? part.size() : 0))
    end_wrong("more than " + std::to_string(node_ids::most_unfinished >> 30) + " GiB of messages that are not complete");
}

/// Also where memory is short: the connection ends, whether there is memory to say why or not.
void tcp_scribe::stream::end_wrong(std::string_view what, const char* why) noexcept {
  is_wrong_ = true;
  ::shutdown(fd(), SHUT_RDWR);  // the event loop then finds that the connection is over
  try {
    scribe_.host_.note_wrong(there_, std::string(what) + why);
  } catch (...) {  // NOLINT(bugprone-empty-catch)
  }
}

void tcp_scribe::stream::note_waiting() {
  const auto waiting = leaving.waiting();
  const bool is_much = waiting > connection_host::least_noted;
  if (std::exchange(notes_waiting_, is_much) || is_much) scribe_.host_.note_waiting(fd(), waiting);
}

tcp_scribe::stream::sent tcp_scribe::stream::send() {
  const auto result = send_some();
  note_waiting();
  return result;
}

tcp_scribe::stream::sent tcp_scribe::stream::send_some() {
  for (int i = 0;; ++i) {
    if (secured_ && !secured_->flush()) return may_work_later(errno) ? sent::some : sent::failed;
    if (leaving.empty() || (secured_ && !secured_->is_proven())) break;
    if (i == most_writes) return sent::some;
    channel_.move_outgoing();
    const auto next = leaving.front();
    const auto went = channel_.writes() ? channel_.write(next.data(), next.size())
                      : secured_        ? secured_->write(next.data(), next.size())
                                        : ::send(fd(), next.data(), next.size(), MSG_NOSIGNAL);
    if (went < 0) return may_work_later(errno) ? sent::some : sent::failed;
    leaving.pop(static_cast<std::size_t>(went));
    channel_.count_sent(static_cast<std::size_t>(went));
    notes_.left(static_cast<std::size_t>(went), leaving.empty());
    if (ack_writes()) scribe_.data_transferred(&backend(), static_cast<std::size_t>(went), leaving.waiting());
  }
  if (phase_ == phase::closing) finish();
  return sent::all;
}

void tcp_scribe::stream::write_now() {
  const auto how = send();
  if (how == sent::all)
    writing_ = writing::idle;
  else if (how == sent::some && channel_.writes())
    wait_for_memory();
  else
    wait_for_socket();  // also after a failure: the event loop meets the same failure, and may tell the broker
}

/// To be called when the socket has room for more bytes.
void tcp_scribe::stream::write() {
  const auto how = send();
  if (how == sent::some && !channel_.writes()) return;
  if (how == sent::failed) {
    consume_last();
    fail(operation::write);
  }
  writing_ = writing::idle;
  if (how == sent::some) wait_for_memory();
  backend().del(operation::write, fd(), this);
}

void tcp_scribe::stream::wait_for_socket() {
  writing_ = writing::waits_for_socket;
  writer_.reset(&scribe_);
  backend().add(operation::write, fd(), this);
}

void tcp_scribe::stream::wait_for_memory() {
  writing_ = writing::waits_for_memory;
  watch_channel();
}

void tcp_scribe::stream::search_channel() {
  if (!channel_.search(fd())) return;
  bell_ = std::make_unique<bell_handler>(*this);
  scribe_.host_.note_channel(fd(), channel_.process());
  watch_channel();
}

void tcp_scribe::stream::cut_channel() {
  if (!channel_.is_open()) return;
  channel_.cut();
  bell_->leave_loop();
  scribe_.host_.forget(&scribe_);
}

void tcp_scribe::stream::watch_channel() { scribe_.host_.watch(&scribe_); }

/// If the other end's counter is impossible, shuts the socket down. The event loop then finds that the connection is over.
std::size_t tcp_scribe::stream::take_from_memory(char* to, std::size_t bytes) {
  const auto taken = channel_.read(to, bytes);
  if (!taken) ::shutdown(fd(), SHUT_RDWR);
  return taken.value_or(0);
}

bool tcp_scribe::stream::look() {
  channel_.wake_reader();
  if (channel_.is_empty() && writing_ != writing::waits_for_memory) return false;
  const auto before = channel_.moved();
  guarded([this] {
    consume();
    if (writing_ == writing::waits_for_memory) write_now();
  });
  return channel_.moved() != before;
}

/// A halted reader needs no ring. Bytes in memory that have to wait for bytes from TCP need no ring either: TCP brings an
/// event.
bool tcp_scribe::stream::may_sleep() {
  const bool reads = reading_ == reading::halted || channel_.reader_may_sleep();
  const bool writes = writing_ != writing::waits_for_memory || channel_.writer_may_sleep();
  return reads && writes;
}

void tcp_scribe::stream::bell_rang() {
  if (!channel_.take_rings())
    cut_channel();
  else if (channel_.is_open())
    watch_channel();
  look();
}

}  // namespace troupe::network
