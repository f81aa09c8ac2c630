// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <caf/intrusive_ptr.hpp>
#include <caf/io/network/default_multiplexer.hpp>
#include <caf/io/network/event_handler.hpp>
#include <caf/io/receive_policy.hpp>
#include <caf/io/scribe.hpp>

#include <troupe/actors/network/chunk_buffer.hpp>
#include <troupe/actors/network/peer_messages.hpp>
#include <troupe/actors/network/silent_connections.hpp>
#include <troupe/actors/network/transport.hpp>
#include <troupe/actors/network/write_scheduler.hpp>

namespace troupe::network {

class connection_host;

/// A broker's TCP connection. One system call reads a small message, and one writes the flushed bytes. CAF's own scribe needs
/// three calls to read and four to write. The event loop tells the broker of data and of failures, as CAF's does.
/// CAF's setting `middleman.max-consecutive-reads` has no effect here. The scribe moves bytes between the event loop and a
/// stack of layers. `transport` has the socket, TLS and shared memory. `chunk_buffer` collects the bytes that the broker wants
/// next. `write_scheduler` decides which bytes leave next. `peer_messages` decides which messages may come, and from whom. If
/// the other end is a tcp_scribe of this machine too, each direction moves to memory that both ends share
/// (`connection_channel`). It moves once TCP has taken all bytes that were sent before. From then on TCP only says when the
/// connection is over.
///   TS-1  flushed bytes leave in order. As many as the system takes leave before the multiplexer waits for an event, and the
///         rest when the system takes more. A connection that the broker closes ends after its last byte has left.
///   TS-2  bytes that were read beyond what the broker wanted are consumed first when the broker wants more. A halted broker
///         gets no bytes.
///   TS-3  the broker learns of a failure from the event loop, never within a call that the broker makes.
///   TS-4  a scribe lives while its broker or the event loop holds it, while a catch_up() is due, or while watched_connections
///         holds it.
///   TS-5  bytes from TCP are consumed before bytes from shared memory, and all of them before the broker learns of the end.
///   TS-6  a scribe with a channel is watched or rung, or has asked the other end to wake it.
///   TS-7  memory that a burst of traffic took, in either direction, is freed once many smaller messages have passed.
///   TS-8  if both ends are tcp_scribes of BASP's broker, a large message leaves in fragments. Small messages of other senders
///         leave between two fragments (see `write_scheduler`). A connection on which a wrong fragment comes is over.
///   TS-9  with TLS, at most 64 KiB of bytes are encrypted before the system takes them. So small messages can still overtake
///         the other bytes that wait. Bytes in shared memory are not encrypted.
///   TS-10 a connection is over if a message of BASP comes that breaks message_rules. The broker gets nothing of the message.
///   TS-11 a payload takes at most 1 MiB of memory, or twice the bytes that have come, whatever its header announces. If there
///         is no memory for a message, its connection ends, and other connections go on.
///   TS-12 with TLS, a message can't be read if its sender is not the node in the certificate of the connection. No byte is
///         read before the other end has proven its certificate.
///   TS-13 with TLS, a connection ends if CAF uses more memory for its messages than broker_notes allows.
///   TS-14 if both ends are tcp_scribes of BASP's broker, the elements of a tensor_piece trail their message: they leave out of
///         the tensor, and come into the memory of their transfer.
class tcp_scribe final : public caf::io::scribe {
 public:
  /// Takes over the connected socket, for as long as `network` serves it. If this throws, the socket is closed. `host`: the
  /// event loop behind `network`. `which`: the end of the connection that this process has. `secured`: the TLS session of the
  /// connection; null without TLS. The scribe of a calling end goes on with the handshake: until both ends are proven, nothing
  /// is read and nothing leaves.
  tcp_scribe(caf::io::network::default_multiplexer& network, connection_host& host, support::owned_descriptor&& socket,
             gate::end which, std::unique_ptr<gate::tls_session> secured = nullptr);

  void configure_read(caf::io::receive_policy::config config) override;
  void ack_writes(bool enable) override { handler_.ack_writes(enable); }
  std::vector<char>& wr_buf() override;
  std::vector<char>& rd_buf() override { return handler_.chunks.chunk(); }
  void flush() override;
  void graceful_shutdown() override;
  void add_to_loop() override;
  void remove_from_loop() override { handler_.stop(); }
  std::string addr() const override;
  std::uint16_t port() const override;

  /// Writes flushed bytes, and consumes bytes that were read ahead. Called by the multiplexer after catch_up_soon().
  void catch_up();
  /// Reads the bytes that TLS holds. Called by the multiplexer after read_on_later().
  void read_on();

  int socket() const noexcept { return handler_.fd(); }
  /// Keeps the token until the first chunk has come: until then the connection counts as silent.
  void expect_first(silent_connections::token silence) { silence_ = std::move(silence); }
  /// For the calling end: from now on this end looks for the shared memory that the other end makes.
  void expect_channel() { handler_.path.memory().expect(socket()); }
  /// Consumes bytes from shared memory, and writes waiting bytes to shared memory. True if a byte was read from memory or
  /// written there. The leader thread calls look() when it polls. Pre of look(), may_sleep() and has_news(): the connection has
  /// a channel.
  bool look() { return handler_.look(); }
  /// Asks the other end to wake this end; false if there is something to look at now.
  bool may_sleep() { return handler_.may_sleep(); }
  /// Whether look() may find something. Costs only two loads, because the leader thread asks every watched connection all the
  /// time.
  bool has_news() { return handler_.has_news(); }

 private:
  /// Moves the bytes of the connection in both directions. Three states change independently of each other and of the channel's
  /// state (see `connection_channel`):
  ///
  ///   reading   meaning                                      next state
  ///   halted    the broker wants no bytes                    start(): wanted. end_wrong(): wrong
  ///   wanted    the broker wants bytes                       stop(): halted. end_wrong(): wrong
  ///   wrong     the connection is over: its bytes broke a    none
  ///             rule, or there was no memory
  ///
  ///   writing           meaning                              next state
  ///   idle              no byte waits for space              write_now(): any
  ///   waits_for_socket  the event loop says when the socket  write(): any
  ///                     has space
  ///   waits_for_memory  the leader thread polls the channel  look(): any
  ///                     for space
  ///
  ///   phase     meaning                                      next state
  ///   created   the broker has not asked for bytes yet       launch(): open. graceful_shutdown(): closing
  ///   open      the broker uses the connection               graceful_shutdown(): closing
  ///   closing   the broker has closed the connection, the    finish(), at once if no byte waits: closed
  ///             last bytes wait to leave
  ///   closed    the last byte has left                       none
  ///
  /// fail() tells the broker, which gives the scribe up; the reading is halted and the channel is cut.
  class socket_handler final : public caf::io::network::event_handler {
   public:
    // Limits of the work for one event, so that other connections have their turn:
    static constexpr int most_reads = 50;
    static constexpr int most_writes = 8;
    static constexpr std::size_t most_from_memory = std::size_t{64} << 10;
    /// After so many messages with trailing elements in a row a large tensor comes: the leader sleeps instead of polling for
    /// the next message.
    static constexpr std::uint32_t enough_in_row = 8;

    socket_handler(caf::io::network::default_multiplexer& network, support::owned_descriptor&& socket, tcp_scribe& scribe,
                   std::unique_ptr<gate::tls_session> secured);

    /// The first call starts the reading and returns true. Later calls have no effect and return false.
    bool launch();
    void start();
    void stop();
    void handle_event(caf::io::network::operation op) override;
    void removed_from_loop(caf::io::network::operation op) override;
    void graceful_shutdown() override;

    /// Hands the bytes that have come to the broker. True: too few bytes are left for the next chunk, or the bytes were wrong.
    /// False: the broker wants no bytes.
    bool consume();
    /// Writes outside of an event of the socket. Bytes that the system does not take are written later.
    void write_now();
    void read_rest();
    /// Runs the work. An exception ends the connection.
    template <class Work>
    void guarded(Work work) noexcept;
    void flush(trailing_bytes trailing);
    /// Whether a later event or look() writes the waiting bytes.
    bool waits() const { return writing_ != writing::idle; }

    // For the shared memory; see the functions of these names in tcp_scribe.
    bool look();
    bool may_sleep();
    bool has_news() { return writing_ == writing::waits_for_memory || path.memory().has_unread(); }

    transport path;
    chunk_buffer chunks;
    peer_messages messages;
    write_scheduler leaving;

   private:
    enum class reading { halted, wanted, wrong };
    enum class writing { idle, waits_for_socket, waits_for_memory };
    enum class phase { created, open, closing, closed };
    /// The outcome of send(): all bytes left, some bytes still wait, or the connection is over.
    enum class sent { all, some, failed };

    /// Tells the handler of the socket when the other end of the channel rings or leaves. The socket belongs to the channel.
    class bell_handler final : public caf::io::network::event_handler {
     public:
      explicit bell_handler(socket_handler& of);
      ~bell_handler() override { fd_ = caf::io::network::invalid_native_socket; }  // so CAF leaves the channel's socket open

      void leave_loop();
      void handle_event(caf::io::network::operation) override { of_.bell_rang(); }
      void removed_from_loop(caf::io::network::operation op) override;
      void graceful_shutdown() override {}

     private:
      socket_handler& of_;
      caf::intrusive_ptr<tcp_scribe> held_;  // while the event loop has this handler
    };

    void handle(caf::io::network::operation op);
    bool prove();
    void read();
    void write();
    bool hand_on_chunk();
    bool hand_to_broker(std::size_t bytes);
    void want_next();
    void want_trailing();
    void grow_part();
    void note_unfinished();
    void end_for_memory(bool is_fragment);
    void end_wrong(std::string_view what, const char* why = "") noexcept;
    sent send();
    sent send_some();
    void note_waiting();
    void wait_for_socket();
    void wait_for_memory();
    void finish();
    void fail(caf::io::network::operation op);

    void search_channel();
    void cut_channel();
    void watch_channel();
    void bell_rang();
    void consume_last();

    tcp_scribe& scribe_;
    caf::intrusive_ptr<tcp_scribe> reader_;  // while the event loop has this handler for reading
    caf::intrusive_ptr<tcp_scribe> writer_;  // while the event loop has this handler for writing
    reading reading_ = reading::halted;
    writing writing_ = writing::idle;
    phase phase_ = phase::created;
    bool notes_waiting_ = false;          // whether the host was told of waiting bytes
    std::unique_ptr<bell_handler> bell_;  // once the channel is found; destroyed before the channel
  };

  void catch_up_soon();
  void read_on_later();
  void meet_broker();

  caf::io::network::default_multiplexer& network_;
  connection_host& host_;
  const gate::end which_;
  socket_handler handler_;
  trailing_elements trailing_{handler_.leaving.open()};
  silent_connections::token silence_;  // until the first chunk has come
  bool will_catch_up_ = false;
  bool will_read_on_ = false;
  bool has_met_broker_ = false;
  caf::io::basp_broker* basp_ = nullptr;  // the broker, if it is CAF's broker for BASP
};

}  // namespace troupe::network
