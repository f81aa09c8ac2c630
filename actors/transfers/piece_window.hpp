// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <limits>

namespace troupe::transfers {

/// How many pieces may be on their way to one node. The window follows the bandwidth of the way and its delay, as BBR does
/// (Cardwell and others, "BBR: Congestion-Based Congestion Control", 2016): twice the highest rate at which pieces were taken
/// lately, times the shortest time from a piece to its answer. Fewer pieces would leave the way idle while answers are on their
/// way back. More pieces would wait in queues, in front of other messages. Times are nanoseconds of one clock.
///   WD-1  the window has at least `least` and at most `most` pieces.
///   WD-2  on a way of constant rate and delay the window reaches what the way holds. It stays below four times that, or 2 * `least`
///         if that is more.
///   WD-3  if rate or delay change, the window follows within 2 * `memory_ns`.
class piece_window {
 public:
  static constexpr int least = 4;
  static constexpr int most = 256;
  /// For so long a rate or a delay counts.
  static constexpr std::int64_t memory_ns = 10'000'000'000;

  /// What has to be known of a piece when the answer to the piece comes.
  struct piece {
    std::int64_t left_ns;   // when the piece left
    std::int64_t taken;     // number of answers that had come then
    std::int64_t taken_ns;  // when the last of them had come
    bool fills;             // whether the window was full with this piece
    bool measures;          // whether the piece ends the draining
  };

  /// To be called when a piece leaves, with the number of pieces that are on their way then.
  piece leaves(int under_way, std::int64_t now_ns);
  /// To be called when the node has taken or refused the piece.
  void answered(const piece& of, std::int64_t now_ns);
  /// The window, in pieces.
  int size() const;

 private:
  void start_over(std::int64_t now_ns);

  std::int64_t taken_ = 0;
  std::int64_t taken_ns_ = 0;
  bool drains_ = false;  // a span begins: few pieces leave until one of them shows the delay without a queue

  // Highest rate and shortest delay of the current span of memory_ns and of the one before.
  std::int64_t span_ns_ = 0;  // when the current span began; 0: no piece has left
  double rate_ = 0;           // pieces a nanosecond
  double rate_before_ = 0;
  std::int64_t delay_ns_ = std::numeric_limits<std::int64_t>::max();
  std::int64_t delay_before_ns_ = std::numeric_limits<std::int64_t>::max();
};

}  // namespace troupe::transfers
