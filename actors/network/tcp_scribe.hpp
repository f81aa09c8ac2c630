// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/types.h>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <caf/intrusive_ptr.hpp>
#include <caf/io/network/default_multiplexer.hpp>
#include <caf/io/network/event_handler.hpp>
#include <caf/io/receive_policy.hpp>
#include <caf/io/scribe.hpp>

#include <troupe/actors/network/memory_lane.hpp>
#include <troupe/actors/network/write_queue.hpp>
#include <troupe/actors/support/recent_peak.hpp>

namespace troupe::network {

class connection_host;

/// A broker's TCP connection. One system call reads a small message and one writes the flushed bytes; CAF's own scribe needs three
/// and four. As with CAF's scribe, the event loop tells the broker what came and what failed. CAF's setting
/// `middleman.max-consecutive-reads` has no effect here.
/// If the other end is a tcp_scribe of this machine too, each direction moves to memory that both ends share (`memory_lane`), at a
/// moment when TCP has taken all that was written before. From then on TCP only says when the connection is over.
///   TS-1  flushed bytes leave in order: as many as the system takes before the multiplexer waits for anything, the rest when the
///         system takes more. A connection that the broker closes ends after its last byte has left.
///   TS-2  bytes that were read beyond what the broker wanted are consumed first when the broker wants more. A halted broker gets
///         none.
///   TS-3  the broker learns of a failure from the event loop, never within a call of its own.
///   TS-4  a scribe lives while its broker or the event loop holds it, while a catch_up() is due, or while it is watched.
///   TS-5  bytes from TCP are consumed before bytes from shared memory, and all of them before the broker learns of the end.
///   TS-6  a scribe with a lane is watched, or the other end has to wake it.
///   TS-7  memory that a burst of traffic took, in either direction, is freed once many smaller messages have passed.
class tcp_scribe final : public caf::io::scribe {
 public:
  /// Takes over the connected socket, for as long as `network` serves it. `host`: the event loop behind `network`.
  tcp_scribe(caf::io::network::default_multiplexer& network, connection_host& host, caf::io::network::native_socket socket);

  void configure_read(caf::io::receive_policy::config config) override;
  void ack_writes(bool enable) override { stream_.ack_writes(enable); }
  std::vector<char>& wr_buf() override { return stream_.leaving.open(); }
  std::vector<char>& rd_buf() override { return stream_.part; }
  void flush() override;
  void graceful_shutdown() override;
  void add_to_loop() override;
  void remove_from_loop() override;
  std::string addr() const override;
  std::uint16_t port() const override;

  /// Writes flushed bytes, and consumes bytes that were read ahead. Called by the multiplexer after catch_up_soon().
  void catch_up();

  /// For the calling end: from now on it looks for the shared memory that the other end offers.
  void expect_lane() { stream_.expect_lane(); }
  /// Consumes bytes from shared memory, and writes bytes that waited for room there. True if there were any. Called when the
  /// network threads poll.
  bool look() { return stream_.look(); }
  /// Asks the other end to wake this end; false if there is something to look at now.
  bool may_sleep() { return stream_.may_sleep(); }
  /// Whether look() may find something. Costs two loads: the network threads ask every watched connection all the time.
  bool has_news() const { return stream_.has_news(); }

 private:
  class stream final : public caf::io::network::event_handler {
   public:
    static constexpr std::size_t ahead_bytes = std::size_t{16} << 10;
    // Limits of one event, so that other connections have their turn:
    static constexpr int most_reads = 50;
    static constexpr int most_writes = 8;
    static constexpr std::size_t most_from_memory = std::size_t{64} << 10;
    /// Memory that is kept for parts of messages, however small the parts are.
    static constexpr std::size_t kept_bytes = std::size_t{64} << 10;
    /// The calling end has the other end's lane within this many reads, or never.
    static constexpr int reads_until_lane = 16;

    stream(caf::io::network::default_multiplexer& network, caf::io::network::native_socket socket, tcp_scribe& scribe);

    void start();
    void stop();
    void handle_event(caf::io::network::operation op) override;
    void removed_from_loop(caf::io::network::operation op) override;
    void graceful_shutdown() override;

    /// Hands bytes to the broker until the broker wants more than there are: true. False if the broker wants none.
    bool consume();
    /// Writes outside of an event. Bytes that the system does not take are written in later events.
    void write_first();
    bool has_ahead() const { return ahead_begin_ < ahead_end_; }
    bool waits() const { return waits_; }

    void expect_lane();
    bool look();
    bool may_sleep();
    bool has_news() const { return waits_for_room_ || lane_->incoming.has_news(); }

    caf::io::receive_policy::config wanted;
    std::vector<char> part;  // the next bytes for the broker
    write_queue leaving;

   private:
    enum class sent { all, some, failed };

    /// The socket by which the other end wakes this one.
    class bell final : public caf::io::network::event_handler {
     public:
      bell(stream& of, support::owned_descriptor socket);

      void ring() const;
      void leave_loop();
      bool is_cut() const { return is_cut_; }
      void handle_event(caf::io::network::operation op) override;
      void removed_from_loop(caf::io::network::operation op) override;
      void graceful_shutdown() override {}

     private:
      stream& of_;
      caf::intrusive_ptr<tcp_scribe> held_;
      bool is_cut_ = false;
    };

    void read();
    void write();
    void want_next();
    sent send();
    void wait_for_room(sent how);
    void fail(caf::io::network::operation op);

    void look_for_lane();
    void leave_lane();
    bool reads_memory();
    bool writes_memory() const { return lane_ && lane_->outgoing.begun(); }
    std::size_t take_from_memory(char* to, std::size_t bytes);
    ssize_t put_into_memory(const char* from, std::size_t bytes);
    void consume_last();
    void woken(bool for_good);

    tcp_scribe& scribe_;
    caf::intrusive_ptr<tcp_scribe> reader_;
    caf::intrusive_ptr<tcp_scribe> writer_;
    bool wants_ = false;           // the broker wants bytes
    bool waits_ = false;           // until the system takes more
    bool waits_for_room_ = false;  // until the other end reads shared memory
    bool closes_ = false;          // once all bytes have left

    std::size_t collected_ = 0;  // bytes of the current part that have been read
    std::size_t threshold_ = 1;
    support::recent_peak peak_;  // sizes of parts
    std::vector<char> ahead_;
    std::size_t ahead_begin_ = 0;
    std::size_t ahead_end_ = 0;

    int lane_chances_ = 0;
    std::optional<lane_door> door_;  // at the calling end
    std::unique_ptr<memory_lane> lane_;
    std::unique_ptr<bell> bell_;
    std::uint64_t received_ = 0;  // bytes by TCP
    std::uint64_t sent_ = 0;
    std::uint64_t moved_ = 0;  // bytes in shared memory, both directions
    bool reads_memory_ = false;
  };

  void catch_up_soon();

  caf::io::network::default_multiplexer& network_;
  connection_host& host_;
  stream stream_;
  bool launched_ = false;
  bool will_catch_up_ = false;
};

}  // namespace troupe::network
