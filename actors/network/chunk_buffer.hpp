// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/uio.h>
#include <cstddef>
#include <span>
#include <vector>

#include <caf/io/receive_policy.hpp>

#include <troupe/actors/support/recent_peak.hpp>

namespace troupe::network {

/// Cuts the bytes that come by a connection into the chunks that its broker wants. Bytes that come beyond a chunk are stored
/// for the next chunks.
///
///   state     meaning                                              next state
///   filling   the chunk has space, and too few bytes have come     add(): any
///   full      the chunk has no space, and too few bytes have come  grow(): filling
///   complete  enough bytes have come                               take(), then want_next(), want_rest() or want_into(): any
///
///   BU-1  bytes leave in the chunks in the order in which they came, each once.
///   BU-2  a chunk takes at most `first_capacity` bytes of memory, or twice the bytes that have come, however many bytes the
///         broker wants.
///   BU-3  memory that a large chunk took is freed once many smaller chunks have passed.
///   BU-4  bytes that go into memory of somebody else leave the chunk as it is. After take() no byte goes there.
class chunk_buffer {
 public:
  static constexpr std::size_t ahead_bytes = std::size_t{16} << 10;
  /// `first_capacity`: for how many bytes a chunk has space at first. `most_reserved`: how many bytes of memory may be reserved
  /// for a chunk before its bytes have come.
  static constexpr std::size_t first_capacity = std::size_t{1} << 20;
  static constexpr std::size_t most_reserved = std::size_t{64} << 20;
  /// Memory is freed only if its capacity is more than twice this many bytes, however small the chunks are.
  static constexpr std::size_t kept_bytes = std::size_t{64} << 10;

  enum class state { filling, full, complete };

  /// Says how many bytes the broker wants in the next chunks.
  void wish(caf::io::receive_policy::config wanted) noexcept { wanted_ = wanted; }
  /// Begins the next chunk. Throws std::bad_alloc.
  void want_next();
  /// Begins a chunk whose first `come` bytes are already in chunk(). chunk() has the size of the whole chunk.
  void want_rest(std::size_t come) noexcept;
  /// The next bytes go into this memory, not into chunk(). The memory lives until take().
  void want_into(std::span<char> memory) noexcept;
  /// Makes space for more bytes. Reserved memory takes no physical memory until bytes come. Throws std::bad_alloc.
  void grow();

  state now() const noexcept {
    return collected_ >= threshold_ ? state::complete : collected_ < to_.size() ? state::filling : state::full;
  }
  bool is_empty() const noexcept { return collected_ == 0; }
  /// The most bytes that the chunk may have.
  std::size_t wished() const noexcept { return wished_; }

  /// Where one read from the wire puts its bytes: first into the chunk, then into the space for bytes beyond the chunk. Pre of
  /// space_ahead(): has_ahead() is false.
  iovec space() noexcept { return {to_.data() + collected_, to_.size() - collected_}; }
  iovec space_ahead() noexcept { return {ahead_.data(), ahead_.size()}; }
  /// Says that `bytes` bytes were read into space(), and then into space_ahead().
  void add(std::size_t bytes) noexcept;
  /// Moves bytes that came beyond the last chunk into this chunk.
  void add_ahead() noexcept;
  bool has_ahead() const noexcept { return ahead_begin_ < ahead_end_; }

  std::vector<char>& chunk() noexcept { return chunk_; }
  /// Returns how many bytes the complete chunk has. The next chunk begins without bytes.
  std::size_t take() noexcept;

 private:
  caf::io::receive_policy::config wanted_ = caf::io::receive_policy::at_most(1024);
  std::vector<char> chunk_;
  std::span<char> to_;         // where the bytes go: all of chunk_, or memory of somebody else
  std::size_t collected_ = 0;  // bytes that have come
  std::size_t threshold_ = 1;  // with this many bytes the chunk is complete
  std::size_t wished_ = 1;
  support::recent_peak peak_;  // sizes of chunks
  std::vector<char> ahead_ = std::vector<char>(ahead_bytes);
  std::size_t ahead_begin_ = 0;
  std::size_t ahead_end_ = 0;
};

}  // namespace troupe::network
