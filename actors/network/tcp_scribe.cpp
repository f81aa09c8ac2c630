// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/network/tcp_scribe.hpp>

#include <unistd.h>
#include <cerrno>
#include <exception>
#include <new>
#include <utility>

#include <caf/io/basp_broker.hpp>
#include <caf/io/network/native_socket.hpp>

#include <troupe/actors/network/connection_host.hpp>
#include <troupe/actors/network/handing_over.hpp>

namespace troupe::network {

using caf::io::receive_policy;
using caf::io::network::operation;

namespace {

bool may_work_later(int problem) { return problem == EAGAIN || problem == EWOULDBLOCK || problem == EINTR; }

}  // namespace

tcp_scribe::tcp_scribe(caf::io::network::default_multiplexer& network, connection_host& host,
                       support::owned_descriptor&& socket, gate::end which, std::unique_ptr<gate::tls_session> secured)
    : scribe(caf::io::network::conn_hdl_from_socket(socket.get())),
      network_(network),
      host_(host),
      which_(which),
      handler_(network, std::move(socket), *this, std::move(secured)) {}

/// Finds out whether the broker is CAF's broker for BASP. The constructor can't do this, because the scribe gets its broker
/// after its construction, and before the broker's first call.
void tcp_scribe::meet_broker() {
  if (std::exchange(has_met_broker_, true)) return;
  basp_ = dynamic_cast<caf::io::basp_broker*>(parent());
  if (basp_ != nullptr) handler_.messages.begin(message_rules(which_, host_.peers().own));
}

void tcp_scribe::configure_read(receive_policy::config config) {
  meet_broker();
  handler_.chunks.wish(config);
  if (handler_.launch() && handler_.path.wire().has_unread()) read_on_later();
}

/// The broker calls this before it writes each message.
std::vector<char>& tcp_scribe::wr_buf() {
  if (trailing_.has_any()) flush();
  trailing_.begin_message(handler_.leaving.lets_trail());
  return handler_.leaving.open();
}

void tcp_scribe::flush() {
  meet_broker();
  handler_.flush(trailing_.end_message());
  if (!handler_.leaving.empty() && !handler_.waits()) catch_up_soon();
}

void tcp_scribe::graceful_shutdown() {
  handler_.graceful_shutdown();
  detach(&network_, false);
}

void tcp_scribe::add_to_loop() {
  handler_.start();
  if (handler_.chunks.has_ahead() || handler_.path.wire().has_unread()) catch_up_soon();
}

std::string tcp_scribe::addr() const {
  const auto found = caf::io::network::remote_addr_of_fd(handler_.fd());
  return found ? *found : std::string{};
}

std::uint16_t tcp_scribe::port() const {
  const auto found = caf::io::network::remote_port_of_fd(handler_.fd());
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
  handler_.guarded([this] {
    if (handler_.chunks.has_ahead()) handler_.consume();
    if (handler_.path.wire().has_unread()) read_on_later();  // not now: the bytes that it reads may need another catch_up()
    if (!handler_.waits()) handler_.write_now();
  });
}

void tcp_scribe::read_on() {
  will_read_on_ = false;
  handler_.guarded([this] { handler_.read_rest(); });
}

tcp_scribe::socket_handler::bell_handler::bell_handler(socket_handler& of)
    : event_handler(of.backend(), of.path.memory().bell()), of_(of), held_(&of.scribe_) {
  activate();
}

void tcp_scribe::socket_handler::bell_handler::leave_loop() {
  passivate();
  if (eventbf() == 0) held_.reset();  // the event loop has not added this handler yet, and won't call removed_from_loop()
}

void tcp_scribe::socket_handler::bell_handler::removed_from_loop(operation) { const auto last = std::move(held_); }

tcp_scribe::socket_handler::socket_handler(caf::io::network::default_multiplexer& network, support::owned_descriptor&& socket,
                                           tcp_scribe& scribe, std::unique_ptr<gate::tls_session> secured)
    : event_handler(network, socket.release()),
      path(fd(), std::move(secured), scribe.host_.shares_memory()),
      messages(scribe.host_.peers()),
      scribe_(scribe) {
  if (path.secured() != nullptr && path.now() == transport::state::open) messages.meet(path.secured()->other());
}

bool tcp_scribe::socket_handler::launch() {
  if (phase_ != phase::created) return false;
  phase_ = phase::open;
  start();
  return true;
}

void tcp_scribe::socket_handler::start() {
  if (reading_ == reading::halted) reading_ = reading::wanted;
  if (path.memory().now() == connection_channel::state::open) watch_channel();
  if (!reader_) {
    reader_.reset(&scribe_);
    using state = fragment_reader::state;
    const auto comes = messages.frames().now();
    if (chunks.is_empty() && comes != state::fragment && comes != state::trailing) want_next();
  }
  activate();
}

void tcp_scribe::socket_handler::stop() {
  if (reading_ == reading::wanted) reading_ = reading::halted;
  passivate();
  if (!reader_ || (eventbf() & caf::io::network::input_mask) != 0) return;
  // The event loop has not added this handler for reading yet, so removed_from_loop() will not be called. reader_ may be the
  // last owner of the scribe: catch_up_soon() holds the scribe until the current event is over.
  scribe_.host_.catch_up_soon(&scribe_);
  reader_.reset();
}

void tcp_scribe::socket_handler::handle_event(operation op) {
  guarded([this, op] { handle(op); });
}

/// Runs the work. If the work throws, because memory is short, this connection ends, and the event loop goes on with the
/// others.
template <class Work>
void tcp_scribe::socket_handler::guarded(Work work) noexcept {
  try {
    work();
  } catch (const std::exception& problem) {
    end_wrong("what this node could not take: ", problem.what());
  }
}

void tcp_scribe::socket_handler::handle(operation op) {
  switch (op) {
    case operation::read:
      // With TLS it is faster to poll (docs/results/2026-11-30.md).
      if (path.secured() == nullptr && messages.frames().trailed_in_row() >= enough_in_row) scribe_.host_.rest_for_large();
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

void tcp_scribe::socket_handler::removed_from_loop(operation op) {
  if (op == operation::read) reader_.reset();
  if (op == operation::write) writer_.reset();
}

void tcp_scribe::socket_handler::graceful_shutdown() {
  if (phase_ == phase::closing || phase_ == phase::closed) return;
  phase_ = phase::closing;
  if (leaving.empty() && !path.wire().has_unsent()) finish();
}

void tcp_scribe::socket_handler::finish() {
  phase_ = phase::closed;
  path.end_writing();
  cut_channel();
}

void tcp_scribe::socket_handler::fail(operation op) {
  scribe_.io_failure(&backend(), op);
  stop();
  cut_channel();
}

/// Remembers the questions in the new messages, because only the node that was asked may answer.
void tcp_scribe::socket_handler::flush(trailing_bytes trailing) {
  if (messages.now() == peer_messages::state::proven && scribe_.basp_ != nullptr)
    leaving.for_each_new([this](const message_head& next) { messages.leaves(next); });
  leaving.seal(std::move(trailing));
  note_waiting();
}

/// Goes on with the handshake of TLS. True: both ends have proven who they are.
bool tcp_scribe::socket_handler::prove() {
  const auto& tls = *path.secured();
  switch (path.prove()) {
    case transport::progress::proven:
      messages.meet(tls.other());
      if (!leaving.empty() && !waits()) write_now();
      return true;
    case transport::progress::failed:
      if (!tls.problem().has_ended) scribe_.host_.note_wrong(path.there(), "what proves nothing: " + tls.problem().why);
      fail(operation::read);
      return false;
    case transport::progress::wants_to_write:
      if (!waits()) wait_for_socket();
      return false;
    case transport::progress::wants_to_read:
      break;
  }
  return false;
}

void tcp_scribe::socket_handler::read_rest() {
  if (reader_ && reading_ == reading::wanted) read();
}

/// Reads the bytes that the broker wants, and bytes that follow them.
void tcp_scribe::socket_handler::read() {
  const auto* tls = path.secured();
  if (tls != nullptr && messages.now() == peer_messages::state::unknown && !prove()) return;
  if (!consume()) return;
  if (reading_ == reading::wrong) return fail(operation::read);
  for (int i = 0; i < most_reads; ++i) {
    const auto wanted = chunks.space().iov_len + chunks.space_ahead().iov_len;
    const auto came = path.read(chunks.space(), chunks.space_ahead());
    if (came <= 0) {
      if (came < 0 && may_work_later(errno)) return;
      if (tls != nullptr && !tls->problem().why.empty() && !tls->problem().has_ended)
        scribe_.host_.note_wrong(path.there(), "what ends the connection: " + tls->problem().why);
      consume_last();
      if (reading_ != reading::halted) fail(operation::read);
      return;
    }
    if (path.memory().has_read()) return fail(operation::read);  // no byte may come by TCP any more
    chunks.add(static_cast<std::size_t>(came));
    if (path.memory().now() == connection_channel::state::searching) search_channel();
    const bool goes_on = consume();
    if (reading_ == reading::wrong) return fail(operation::read);
    // Memory may hold bytes that had to wait for the bytes that TCP has just brought.
    if (path.memory().reads() && path.memory().now() == connection_channel::state::open) watch_channel();
    if (!goes_on || static_cast<std::size_t>(came) < wanted) return;
  }
  if (path.wire().has_unread()) scribe_.read_on_later();  // the socket may bring no event for these bytes
}

bool tcp_scribe::socket_handler::consume() {
  std::size_t from_memory = 0;
  while (reader_ && reading_ == reading::wanted) {
    chunks.add_ahead();
    if (!chunks.has_ahead() && from_memory < most_from_memory) {
      const auto taken = path.read_memory(chunks.space());
      chunks.add(taken);
      from_memory += taken;
    }
    if (chunks.now() == chunk_buffer::state::filling) return true;
    if (chunks.now() == chunk_buffer::state::full) {
      grow_part();
      continue;
    }
    const bool goes_on = hand_on_chunk();
    if (reading_ == reading::wrong) return true;
    want_next();
    if (!goes_on) stop();
  }
  return reading_ == reading::wrong;
}

/// Hands the complete chunk to the broker, or stores the chunk if it is a fragment. False: the broker wants no more chunks.
bool tcp_scribe::socket_handler::hand_on_chunk() {
  const bool has_trailed = messages.frames().now() == fragment_reader::state::trailing;
  const auto taken = chunks.take();
  const auto bytes = has_trailed ? chunks.chunk().size() : taken;
  scribe_.silence_.reset();
  switch (messages.sort(chunks.chunk())) {
    case fragment_reader::outcome::for_broker:
      // The first message of the called end stays as CAF makes it, because a calling end sees by its bytes whether a node
      // listens.
      if (messages.frames().now() != fragment_reader::state::off) leaving.announce_reading();
      if (messages.frames().other_end_reads()) leaving.split_large(scribe_.host_.unordered_sender());
      if (messages.frames().other_end_reads() && messages.frames().other_end_reads_trailing()) leaving.let_trail();
      return hand_to_broker(bytes);
    case fragment_reader::outcome::kept:
      break;
    case fragment_reader::outcome::wrong:
      end_wrong(messages.problem());
  }
  return true;
}

/// CAF reads the message within this function. While CAF reads, `sender` checks which sender the message names.
bool tcp_scribe::socket_handler::hand_to_broker(std::size_t bytes) {
  const auto sender = messages.reading();
  const auto elements = messages.take_trailing();
  const reading_trailing trailing_now(elements ? &*elements : nullptr);
  const handing_over now(scribe_.basp_ != nullptr);
  const bool goes_on = scribe_.consume(&backend(), chunks.chunk().data(), bytes);
  if (goes_on && scribe_.basp_ != nullptr && !scribe_.detached())  // a broker that has ended can't be asked
    if (const auto why = messages.was_read(*scribe_.basp_, scribe_.hdl()); !why.empty()) end_wrong(why);
  return goes_on;
}

/// Consumes the bytes that the other end left in shared memory.
void tcp_scribe::socket_handler::consume_last() {
  for (auto left = ring_writer::capacity / most_from_memory + 1; left > 0 && consume() && path.memory().reads(); --left)
    if (path.memory().is_empty()) return;
}

/// Prepares for the next bytes that the broker wants, or for the next bytes of a message that comes in fragments.
void tcp_scribe::socket_handler::want_next() {
  const bool is_fragment = messages.frames().has_wish();
  try {
    if (messages.frames().now() == fragment_reader::state::trailing)
      want_trailing();
    else if (is_fragment)
      chunks.want_rest(messages.frames().prepare(chunks.chunk()));
    else
      chunks.want_next();
    note_unfinished();
  } catch (const std::bad_alloc&) {
    end_for_memory(is_fragment);
  }
}

/// Prepares for the elements that trail the message in the chunk.
void tcp_scribe::socket_handler::want_trailing() {
  const auto* to = dynamic_cast<const trailing_receiver*>(&backend().system().config());
  const auto memory = messages.place_trailing(chunks.chunk(), to);
  if (memory.empty()) return end_wrong(messages.problem());
  chunks.want_into(memory);
}

void tcp_scribe::socket_handler::grow_part() {
  try {
    chunks.grow();
    note_unfinished();
  } catch (const std::bad_alloc&) {
    end_for_memory(false);
  }
}

void tcp_scribe::socket_handler::end_for_memory(bool is_fragment) {
  if (is_fragment) return end_wrong("a message in fragments, for which there is no memory");
  end_wrong("a message of " + std::to_string(chunks.wished()) + " bytes, for which there is no memory");
}

/// Ends the connection if the certificate has too many bytes of incomplete messages. Chunks of at most `first_capacity` bytes
/// do not count, because each connection has space for them anyway.
void tcp_scribe::socket_handler::note_unfinished() {
  const auto bytes = chunks.chunk().size();
  if (!messages.may_hold(bytes > chunk_buffer::first_capacity ? bytes : 0))
    end_wrong("more than " + std::to_string(gate::node_ids::most_unfinished >> 30) + " GiB of messages that are not complete");
}

/// Ends the connection, even if there is no memory to report the reason.
void tcp_scribe::socket_handler::end_wrong(std::string_view what, const char* why) noexcept {
  reading_ = reading::wrong;
  path.end();
  try {
    scribe_.host_.note_wrong(path.there(), std::string(what) + why);
  } catch (...) {  // NOLINT(bugprone-empty-catch)
  }
}

void tcp_scribe::socket_handler::note_waiting() {
  const auto waiting = leaving.waiting();
  const bool is_much = waiting > connection_facts::least_noted;
  if (std::exchange(notes_waiting_, is_much) || is_much) scribe_.host_.facts().note_waiting(fd(), waiting);
}

tcp_scribe::socket_handler::sent tcp_scribe::socket_handler::send() {
  const auto result = send_some();
  note_waiting();
  return result;
}

tcp_scribe::socket_handler::sent tcp_scribe::socket_handler::send_some() {
  for (int i = 0;; ++i) {
    if (!path.wire().flush()) return may_work_later(errno) ? sent::some : sent::failed;
    if (leaving.empty() || path.now() == transport::state::proving) break;
    if (i == most_writes) return sent::some;
    const auto next = leaving.front();
    const auto result = path.write(next.data(), next.size(), leaving.goes_on());
    if (result < 0) return may_work_later(errno) ? sent::some : sent::failed;
    const auto went = static_cast<std::size_t>(result);
    leaving.pop(went);
    messages.left(went, leaving.empty());
    if (ack_writes()) scribe_.data_transferred(&backend(), went, leaving.waiting());
  }
  if (phase_ == phase::closing) finish();
  return sent::all;
}

void tcp_scribe::socket_handler::write_now() {
  const auto how = send();
  if (how == sent::all)
    writing_ = writing::idle;
  else if (how == sent::some && path.memory().writes())
    wait_for_memory();
  else
    wait_for_socket();  // also after a failure: the event loop meets the same failure, and may tell the broker
}

/// To be called when the socket has space for more bytes.
void tcp_scribe::socket_handler::write() {
  const auto how = send();
  if (how == sent::some && !path.memory().writes()) return;
  if (how == sent::failed) {
    consume_last();
    fail(operation::write);
  }
  writing_ = writing::idle;
  if (how == sent::some) wait_for_memory();
  backend().del(operation::write, fd(), this);
}

void tcp_scribe::socket_handler::wait_for_socket() {
  writing_ = writing::waits_for_socket;
  writer_.reset(&scribe_);
  backend().add(operation::write, fd(), this);
}

void tcp_scribe::socket_handler::wait_for_memory() {
  writing_ = writing::waits_for_memory;
  watch_channel();
}

void tcp_scribe::socket_handler::search_channel() {
  const auto process = path.memory().search(fd(), [this] { return scribe_.host_.ring(&scribe_); });
  if (!process) return;
  bell_ = std::make_unique<bell_handler>(*this);
  scribe_.host_.facts().note_channel(fd(), *process);
  if (*process == static_cast<std::uint64_t>(::getpid())) {
    const auto name = channel_listener::name(fd(), scribe_.which_ == gate::end::calling);
    if (!name.empty()) scribe_.host_.meet(&scribe_, name);  // empty once the connection is over
  }
  watch_channel();
}

void tcp_scribe::socket_handler::cut_channel() {
  if (path.memory().now() != connection_channel::state::open) return;
  path.memory().cut();
  bell_->leave_loop();
  scribe_.host_.forget(&scribe_);
}

void tcp_scribe::socket_handler::watch_channel() { scribe_.host_.watch(&scribe_); }

bool tcp_scribe::socket_handler::look() {
  auto& memory = path.memory();
  memory.wake_reader();
  if (memory.is_empty() && writing_ != writing::waits_for_memory) return false;
  const auto before = memory.moved();
  guarded([this] {
    consume();
    if (writing_ == writing::waits_for_memory) write_now();
  });
  return memory.moved() != before;
}

/// If the broker wants no bytes, this end needs no ring for bytes. Bytes in memory that have to wait for bytes from TCP need no
/// ring either: TCP brings an event.
bool tcp_scribe::socket_handler::may_sleep() {
  return path.memory().may_sleep(reading_ == reading::wanted, writing_ == writing::waits_for_memory);
}

void tcp_scribe::socket_handler::bell_rang() {
  if (!path.memory().take_rings())
    cut_channel();
  else if (path.memory().now() == connection_channel::state::open)
    watch_channel();
  look();
}

}  // namespace troupe::network
