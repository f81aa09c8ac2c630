// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <limits>

namespace troupe::transfers {

/// How many pieces may be on their way to one node. The window grows as long as pieces do not wait in queues on the way, and shrinks
/// when they do, as the window of LEDBAT does (RFC 6817). So a way that is fast and long is used, and other messages do not wait
/// behind many pieces. The wait of a piece is the time from the piece to its answer, less the shortest such time that was seen lately.
/// Times are nanoseconds of one clock.
///   WD-1  the window has at least `least` and at most `most` pieces.
///   WD-2  on a way of constant rate and delay the window reaches what the way holds. Pieces then wait for at most 2 * `most_wait_ns` and
///         as long as `least` pieces take.
///   WD-3  if rate or delay change, the window follows: a longer delay counts after at most 2 * `memory_ns`.
class piece_window {
 public:
  static constexpr int least = 4;
  static constexpr int most = 256;
  /// How long pieces may wait in queues: twice the shortest delay, and between these times.
  static constexpr std::int64_t least_wait_ns = 500'000;
  static constexpr std::int64_t most_wait_ns = 20'000'000;
  /// For so long the shortest delay counts.
  static constexpr std::int64_t memory_ns = 10'000'000'000;

  /// What has to be known of a piece when the answer to the piece comes.
  struct piece {
    std::int64_t left_ns;
    bool fills;  // whether the window was full with this piece
    bool ends_draining;
  };

  /// To be called when a piece leaves, with the number of pieces that are on their way then.
  piece leaves(int under_way, std::int64_t now_ns);
  /// To be called when the node has taken or refused the piece.
  void answered(const piece& of, std::int64_t now_ns);
  /// The window, in pieces.
  int size() const { return drains_ ? least : static_cast<int>(window_); }

 private:
  static constexpr std::int64_t unknown = std::numeric_limits<std::int64_t>::max();

  void begin_span(std::int64_t now_ns);
  void shrink(double by, std::int64_t now_ns);

  double window_ = least;
  bool starts_ = true;                      // the window doubles with each round trip until pieces wait
  bool drains_ = false;                     // few pieces leave, until one of them shows the delay without a queue
  std::int64_t shrunk_ns_ = 0;              // pieces that left before tell of the window before it shrank
  std::int64_t span_ns_ = 0;                // when the current span of memory_ns began; 0: no piece has left
  std::int64_t delay_ns_ = unknown;         // shortest of this span
  std::int64_t delay_before_ns_ = unknown;  // shortest of the span before
};

}  // namespace troupe::transfers
