// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>

namespace troupe::transfers {

/// Decides how many bytes may be on their way to one node in pieces, and how large a piece is. The window grows as long as
/// pieces do not wait in queues on the path, and shrinks when they do, as the window of LEDBAT does (RFC 6817). So the window
/// fills a fast and long path, and other messages do not wait behind many pieces. Pieces are small on a slow path, because the
/// smallest window is a few pieces, and a message waits until the path has taken all pieces that left before it. The wait of a
/// piece is the time that the piece took to its receiver, less the shortest such time of late. The receiver says by its own
/// clock when it took the piece, so the wait of the answer, behind other bytes of the receiver, does not count. If the receiver
/// says no time, the time of piece and answer together counts. Times are nanoseconds of one clock, unless said otherwise; sizes
/// are bytes.
///   WD-1  the window has at least `least_small` bytes, or `least_large` while pieces are large, and at most `most`.
///   WD-2  on a path of constant rate and delay the window grows to the product of both, or at least to half of it while the
///         path back is full too. Pieces then wait for about 2 * `most_wait_ns`, and for the time that the path takes for the
///         smallest window. The wait is a little longer while the delay is measured anew.
///   WD-3  if rate or delay change, the window follows: a longer delay counts after at most 2 * `memory_ns`.
///   WD-4  pieces are large at first. Once pieces wait on a full path, they become small if the path takes less than `slow`
///         bytes a second, and large if it takes more than `fast`. Neither pieces that the path takes at once after a pause nor
///         a short stop of the path counts.
///   WD-5  a wait never counts for more than the wait of piece and answer together, whatever the receiver's clock shows. If
///         this clock runs fast, waits seem longer, up to this bound. If it runs slow, or is wrong, waits seem shorter, and the
///         window is larger, up to `most`.
class piece_window {
 public:
  static constexpr std::uint64_t small_piece = std::uint64_t{64} << 10;
  static constexpr std::uint64_t large_piece = std::uint64_t{256} << 10;
  static constexpr double slow = 32e6;
  static constexpr double fast = 48e6;
  static constexpr std::uint64_t mean_of = std::uint64_t{2} << 20;  // bytes
  static constexpr std::uint64_t least_small = 2 * small_piece;
  static constexpr std::uint64_t least_large = 4 * large_piece;
  static constexpr std::uint64_t most = std::uint64_t{64} << 20;
  /// How long pieces may wait in queues: twice the delay of piece and answer without this wait, but at least least_wait_ns and
  /// at most most_wait_ns.
  static constexpr std::int64_t least_wait_ns = 500'000;
  static constexpr std::int64_t most_wait_ns = 20'000'000;
  /// The length of a span. The shortest delay is taken from the current span and the span before.
  static constexpr std::int64_t memory_ns = 10'000'000'000;

  /// The facts of a piece that the window needs when the answer to the piece comes.
  struct piece {
    std::int64_t left_ns;
    std::uint64_t bytes;
    std::uint64_t under_way;  // bytes, with this piece
    bool fills;               // whether the window was full with this piece, and was not drained
    bool ends_draining;
  };

  /// To be called when a piece of so many bytes leaves, with the number of bytes that are on their way then.
  piece leaves(std::uint64_t bytes, std::uint64_t under_way, std::int64_t now_ns);
  /// To be called when the receiver has taken or refused the piece. `taken_ns`: when the receiver took the piece, by the
  /// receiver's clock; nothing if the receiver has not said it.
  void answered(const piece& of, std::int64_t now_ns, std::optional<std::int64_t> taken_ns);
  /// The window, in bytes.
  std::uint64_t size() const { return is_draining_ ? smallest() : std::max(smallest(), static_cast<std::uint64_t>(window_)); }
  /// The size of the next piece.
  std::uint64_t piece_bytes() const { return is_small_ ? small_piece : large_piece; }

 private:
  /// The shortest time that was seen in this span and in the span before. A time may be a difference of two clocks, and
  /// negative.
  class shortest_time {
   public:
    /// Notes a time. Returns by how much the time is longer than the shortest time.
    std::int64_t excess(std::int64_t time_ns);
    /// Begins a span. False, without effect, if no time was seen in this span.
    bool begin_span();
    void forget() { this_span_ = span_before_ = unknown; }
    std::int64_t get() const { return std::min(this_span_, span_before_); }

   private:
    static constexpr std::int64_t unknown = std::numeric_limits<std::int64_t>::max();

    std::int64_t this_span_ = unknown;
    std::int64_t span_before_ = unknown;
  };

  std::uint64_t smallest() const { return is_small_ ? least_small : least_large; }
  void choose_size(const piece& of, std::int64_t delay_ns);
  void begin_span(std::int64_t now_ns);
  void shrink(double by, std::int64_t now_ns);

  double window_ = least_large;
  double ns_a_byte_ = 0;  // mean of about the last `mean_of` bytes, or of the last four windows; 0: not known
  bool is_small_ = false;
  bool is_in_slow_start_ = true;  // the window doubles with each round trip until pieces wait
  bool is_draining_ = false;      // few pieces leave, until one of them shows the delay without a queue
  std::int64_t shrunk_ns_ = 0;    // when the window shrank: answers to pieces that left before do not shrink it again
  std::int64_t span_ns_ = 0;      // when the current span of memory_ns began; 0: no piece has left
  shortest_time round_trip_;      // from a piece to its answer
  shortest_time way_there_;       // from a piece, by the sender's clock, to its receiver, by the receiver's clock
};

}  // namespace troupe::transfers
