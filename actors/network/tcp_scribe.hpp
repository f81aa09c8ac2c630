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

/// A broker's TCP connection. One system call reads a small message, which CAF's own scribe needs three for, and one writes what was
/// flushed, for which that needs four. As with that, the event loop tells the broker of what came and what failed. CAF's setting
/// `middleman.max-consecutive-reads` does not matter here.
/// If the other end is one too, on this machine, either direction goes on in memory that both share (`memory_lane`), at a
/// moment when TCP has taken all that was written before. From then on TCP only says when the connection is over.
///   TS-1  what is flushed leaves in its order: before the multiplexer waits for anything as far as the system takes it, the rest
///         when it takes more. A connection that the broker closes ends after that.
///   TS-2  what was read beyond what the broker wanted is consumed first when it wants more. One that was halted gets nothing.
///   TS-3  the broker learns of a failure from the event loop, never within a call of its own.
///   TS-4  it lives as long as its broker has it, the event loop has its sockets, it is to catch up, or it is watched.
///   TS-5  what TCP carried is consumed before what was in shared memory, and that before the broker learns of the end.
///   TS-6  with a lane it is watched, or the other end is to wake it.
///   TS-7  memory that a burst took, either way, is freed once many smaller messages have passed.
class tcp_scribe final : public caf::io::scribe {
 public:
  /// Takes over the connected socket, for as long as `network` serves it, which does what `host` is asked for.
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

  /// Writes what was flushed, and consumes what was read ahead. The multiplexer's, which was asked for it.
  void catch_up();

  /// Has this end, which called the other one, look out for shared memory.
  void expect_lane() { stream_.expect_lane(); }
  /// Consumes what is in shared memory, and writes what waited for room there. True if there was any. The multiplexer's, which
  /// watches.
  bool look() { return stream_.look(); }
  /// Has the other end wake this one; false if there is something to look at.
  bool may_sleep() { return stream_.may_sleep(); }
  /// Whether look() may find something. Two loads: the network threads ask it of every connection all the time.
  bool has_news() const { return stream_.has_news(); }

 private:
  class stream final : public caf::io::network::event_handler {
   public:
    static constexpr std::size_t ahead_bytes = std::size_t{16} << 10;
    // In one event, before others have theirs handled:
    static constexpr int most_reads = 50;
    static constexpr int most_writes = 8;
    static constexpr std::size_t most_from_memory = std::size_t{64} << 10;
    /// Memory for parts, however small they are.
    static constexpr std::size_t kept_bytes = std::size_t{64} << 10;
    /// Who called has the other end's lane after its first words, if ever.
    static constexpr int reads_until_lane = 16;

    stream(caf::io::network::default_multiplexer& network, caf::io::network::native_socket socket, tcp_scribe& scribe);

    void start();
    void stop();
    void handle_event(caf::io::network::operation op) override;
    void removed_from_loop(caf::io::network::operation op) override;
    void graceful_shutdown() override;

    /// Hands over what is there, until the broker wants more than that: true. False if it wants none.
    bool consume();
    /// Writes outside of an event. What the system does not take, events do.
    void write_first();
    bool has_ahead() const { return ahead_begin_ < ahead_end_; }
    bool waits() const { return waits_; }

    void expect_lane();
    bool look();
    bool may_sleep();
    bool has_news() const { return waits_for_room_ || lane_->incoming.has_news(); }

    caf::io::receive_policy::config wanted;
    std::vector<char> part;  // of what comes, for the broker
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
    bool wants_ = false;           // the broker, what comes
    bool waits_ = false;           // until the system takes more, or
    bool waits_for_room_ = false;  // the other end takes what is in shared memory
    bool closes_ = false;          // when all has left

    std::size_t collected_ = 0;  // in part
    std::size_t threshold_ = 1;
    support::recent_peak peak_;  // of the sizes of parts
    std::vector<char> ahead_;
    std::size_t ahead_begin_ = 0;
    std::size_t ahead_end_ = 0;

    int lane_chances_ = 0;
    std::optional<lane_door> door_;  // of who called
    std::unique_ptr<memory_lane> lane_;
    std::unique_ptr<bell> bell_;
    std::uint64_t received_ = 0;  // by TCP
    std::uint64_t sent_ = 0;
    std::uint64_t moved_ = 0;  // either way in shared memory
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
