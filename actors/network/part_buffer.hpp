// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/uio.h>
#include <cstddef>
#include <vector>

#include <caf/io/receive_policy.hpp>

#include <troupe/actors/support/recent_peak.hpp>

namespace troupe::network {

/// Cuts the bytes that come by a connection into the parts that its broker wants. What comes beyond a part is kept for the next
/// ones.
///
///   state     meaning                                             next state
///   filling   the part has room, and too few bytes have come      add(): any
///   full      the part has no room, and too few bytes have come   grow(): filling
///   complete  enough bytes have come                              take(), then want_next() or want_rest(): any
///
///   BU-1  bytes leave in the parts in the order in which they came, each once.
///   BU-2  what is wanted takes no memory before it comes: at most `first_room`, or twice the bytes that have come.
///   BU-3  memory that a large part took is freed once many smaller parts have passed.
class part_buffer {
 public:
  static constexpr std::size_t ahead_bytes = std::size_t{16} << 10;
  /// How many bytes of a part are waited for at first, and how many may be reserved for a part before its bytes have come.
  static constexpr std::size_t first_room = std::size_t{1} << 20;
  static constexpr std::size_t most_reserved = std::size_t{64} << 20;
  /// However small the parts are, their memory is freed only if its capacity is more than twice this.
  static constexpr std::size_t kept_bytes = std::size_t{64} << 10;

  enum class state { filling, full, complete };

  /// What the broker wants of the next parts.
  void wish(caf::io::receive_policy::config wanted) noexcept { wanted_ = wanted; }
  /// Begins the next part of the broker's. Throws std::bad_alloc.
  void want_next();
  /// Begins a part that part() is large enough for; its first `come` bytes are there.
  void want_rest(std::size_t come) noexcept;
  /// Makes room for more bytes. Memory that is reserved takes no room until bytes come. Throws std::bad_alloc.
  void grow();

  state now() const noexcept {
    return collected_ >= threshold_ ? state::complete : collected_ < part_.size() ? state::filling : state::full;
  }
  bool is_empty() const noexcept { return collected_ == 0; }
  /// The most bytes that the part may have.
  std::size_t wished() const noexcept { return wished_; }

  /// The room of the part, and the room beyond, for one read from the wire. Pre of room_ahead(): nothing is ahead.
  iovec room() noexcept { return {part_.data() + collected_, part_.size() - collected_}; }
  iovec room_ahead() noexcept { return {ahead_.data(), ahead_.size()}; }
  /// Says that so many bytes were read into room(), and then into room_ahead().
  void add(std::size_t bytes) noexcept;
  /// Moves bytes that came ahead into the part.
  void add_ahead() noexcept;
  bool has_ahead() const noexcept { return ahead_begin_ < ahead_end_; }

  std::vector<char>& part() noexcept { return part_; }
  /// How many bytes the complete part has. The next part has none yet.
  std::size_t take() noexcept;

 private:
  caf::io::receive_policy::config wanted_ = caf::io::receive_policy::at_most(1024);
  std::vector<char> part_;
  std::size_t collected_ = 0;  // bytes of the part that have come
  std::size_t threshold_ = 1;  // with so many bytes the part is complete
  std::size_t wished_ = 1;
  support::recent_peak peak_;  // sizes of parts
  std::vector<char> ahead_ = std::vector<char>(ahead_bytes);
  std::size_t ahead_begin_ = 0;
  std::size_t ahead_end_ = 0;
};

}  // namespace troupe::network
