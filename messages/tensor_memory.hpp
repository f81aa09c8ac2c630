// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>

#include <c10/core/Storage.h>

#include <troupe/messages/mutex.hpp>

namespace troupe {

/// Allocates memory for tensors that arrive. Freed blocks are used again, because their pages exist already. The system has to
/// zero the pages of a new block, which takes as long as filling the block.
///   TM-1  a block takes no memory before something is written to it. From its third MiB on, it takes pages of 2 MiB where the
///         system has them.
///   TM-2  at most `most_kept` bytes of free blocks are kept, namely the blocks that were freed last. No block is kept once
///         this object and all its storages are gone.
///   TM-3  trim() frees blocks that were not in use since the call before, until `kept_bytes` are kept. It frees about
///         `kept_bytes` in a call. After a call that returned false at most `kept_bytes` are kept, until the next make().
class tensor_memory {
 public:
  static constexpr std::size_t kept_bytes = std::size_t{64} << 20;

  explicit tensor_memory(std::size_t most_kept = kept_bytes) : free_(std::make_shared<free_list>(most_kept)) {}

  /// Returns a storage of `bytes` bytes, not zeroed, aligned as libtorch aligns. The storage may outlive this object. Throws
  /// std::bad_alloc.
  c10::Storage make(std::uint64_t bytes);
  /// Returns the number of bytes in free blocks that are kept.
  std::size_t kept() const;
  /// To be called from time to time after make(), until it returns false. Returns whether more than `kept_bytes` are kept.
  bool trim();

 private:
  struct block;
  class free_list {
   public:
    explicit free_list(std::size_t most_kept) : most_kept_(most_kept), limit_(most_kept) {}
    ~free_list();
    block* take(std::size_t bytes) noexcept;
    void give(block* freed) noexcept;
    std::size_t bytes() const;
    bool trim();

   private:
    const std::size_t most_kept_;
    mutable checked_mutex mutex_;
    std::deque<block*> blocks_ TROUPE_GUARDED_BY(mutex_);  // the last freed block is at the back
    std::size_t bytes_ TROUPE_GUARDED_BY(mutex_) = 0;
    std::size_t limit_ TROUPE_GUARDED_BY(mutex_);  // of bytes_
  };

  static void release(void* elements) noexcept;

  std::shared_ptr<free_list> free_;
};

}  // namespace troupe
