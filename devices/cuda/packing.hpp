// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include <troupe/devices/cuda/grid.hpp>

/// The bodies of two kernels: one copies many pieces of memory into one buffer (packs), one copies the buffer back to the
/// pieces (unpacks).
///   KP-1  a grid of table.blocks() blocks copies all bytes of each piece to the offset that the table gives. It writes no
///         other byte, whatever the alignment of pieces and offsets.
///   KP-2  add() returns false if the table is full, and then adds nothing. A piece without bytes needs no block.
///   KP-3  a table fits into the arguments of a kernel, so no table has to be copied to the GPU before a launch.
namespace troupe::devices::cuda {

/// A list of pieces of memory and their offsets in the buffer. Each piece gets one or more blocks of the grid.
class packing_table {
 public:
  static constexpr std::uint32_t capacity = 1024;
  /// The most bytes that one block of the grid copies. A multiple of the largest word (long_word).
  static constexpr std::uint64_t tile_bytes = 16384;

  /// Adds the piece of `bytes` bytes at `memory`. It begins at `offset` of the buffer. Returns false, and adds nothing, if the
  /// table is full. The caller then launches the kernel with this table and begins a new table.
  bool add(void* memory, std::uint64_t bytes, std::uint64_t offset) {
    const std::uint64_t needed = ceil_div(bytes, tile_bytes);
    if (needed == 0) return true;
    if (size_ == capacity || needed > most_blocks - blocks()) return false;
    memory_[size_] = static_cast<unsigned char*>(memory);
    bytes_[size_] = bytes;
    offset_[size_] = offset;
    ++size_;
    first_block_[size_] = first_block_[size_ - 1] + static_cast<std::uint32_t>(needed);
    return true;
  }

  TROUPE_HOST_DEVICE std::uint32_t size() const { return size_; }
  TROUPE_HOST_DEVICE std::uint32_t blocks() const { return first_block_[size_]; }

  struct tile {
    unsigned char* memory;
    std::uint64_t offset;  // in the buffer
    std::uint64_t bytes;
  };
  TROUPE_HOST_DEVICE tile tile_of(std::uint64_t block) const {
    std::uint32_t piece = 0;  // the last piece whose first block is not after `block`
    std::uint32_t end = size_;
    while (end - piece > 1) {
      const std::uint32_t middle = piece + (end - piece) / 2;
      if (first_block_[middle] <= block)
        piece = middle;
      else
        end = middle;
    }
    const std::uint64_t begin = (block - first_block_[piece]) * tile_bytes;
    const std::uint64_t left = bytes_[piece] - begin;
    return {memory_[piece] + begin, offset_[piece] + begin, left < tile_bytes ? left : tile_bytes};
  }

 private:
  std::uint32_t size_ = 0;
  std::uint32_t first_block_[capacity + 1] = {};
  unsigned char* memory_[capacity];
  std::uint64_t bytes_[capacity];
  std::uint64_t offset_[capacity];
};
static_assert(sizeof(packing_table) <= 32000, "the arguments of a kernel have at most 32,764 bytes");

// The words in which memory is copied. The memory may hold elements of any type, so the words may alias them.
struct __attribute__((may_alias, aligned(16))) long_word {
  std::uint64_t low, high;
};
struct __attribute__((may_alias, aligned(4))) short_word {
  std::uint32_t bits;
};

// Copies this thread's share of the whole words in `bytes` bytes. Returns the number of bytes in all whole words.
template <class Word>
TROUPE_HOST_DEVICE inline std::uint64_t copy_words(unsigned char* to, const unsigned char* from, std::uint64_t bytes,
                                                   std::uint32_t thread) {
  const std::uint64_t words = bytes / sizeof(Word);
  for (std::uint64_t i = thread; i < words; i += threads_in_block)
    reinterpret_cast<Word*>(to)[i] = reinterpret_cast<const Word*>(from)[i];
  return words * sizeof(Word);
}

/// Returns the size in bytes of the largest word for which both addresses are aligned: 16, 4 or 1. A GPU fails if it accesses a
/// word that is not aligned.
TROUPE_HOST_DEVICE inline std::uint32_t word_bytes(const void* to, const void* from) {
  const auto addresses = reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from);
  if (addresses % sizeof(long_word) == 0) return sizeof(long_word);
  return addresses % sizeof(short_word) == 0 ? sizeof(short_word) : 1;
}

TROUPE_HOST_DEVICE inline void copy_tile(unsigned char* to, const unsigned char* from, std::uint64_t bytes,
                                         std::uint32_t thread) {
  const std::uint32_t word = word_bytes(to, from);
  std::uint64_t copied = 0;
  if (word == sizeof(long_word))
    copied = copy_words<long_word>(to, from, bytes, thread);
  else if (word == sizeof(short_word))
    copied = copy_words<short_word>(to, from, bytes, thread);
  for (std::uint64_t i = copied + thread; i < bytes; i += threads_in_block) to[i] = from[i];
}

/// Copies this thread's share of the pieces into the buffer.
TROUPE_HOST_DEVICE inline void pack_tile(const packing_table& table, unsigned char* buffer, thread_index at) {
  const packing_table::tile tile = table.tile_of(at.block);
  copy_tile(buffer + tile.offset, tile.memory, tile.bytes, at.thread);
}

/// Copies this thread's share of the buffer to the pieces.
TROUPE_HOST_DEVICE inline void unpack_tile(const packing_table& table, const unsigned char* buffer, thread_index at) {
  const packing_table::tile tile = table.tile_of(at.block);
  copy_tile(tile.memory, buffer + tile.offset, tile.bytes, at.thread);
}

}  // namespace troupe::devices::cuda
