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
///   TM-1  a block takes no memory before something is written to it.
///   TM-2  at most `kept_bytes` of free blocks are kept, namely the blocks that were freed last. No block is kept once this
///         object and all its storages are gone.
class tensor_memory {
 public:
  static constexpr std::size_t kept_bytes = std::size_t{64} << 20;

  tensor_memory() : free_(std::make_shared<free_list>()) {}

  /// Returns a storage of `bytes` bytes, not zeroed, aligned as libtorch aligns. The storage may outlive this object. Throws
  /// std::bad_alloc.
  c10::Storage make(std::uint64_t bytes);
  /// Returns the number of bytes in free blocks that are kept.
  std::size_t kept() const;

 private:
  struct block;
  class free_list {
   public:
    ~free_list();
    block* take(std::size_t bytes) noexcept;
    void give(block* freed) noexcept;
    std::size_t bytes() const;

   private:
    mutable checked_mutex mutex_;
    std::deque<block*> blocks_ TROUPE_GUARDED_BY(mutex_);  // the last freed block is at the back
    std::size_t bytes_ TROUPE_GUARDED_BY(mutex_) = 0;
  };

  static void release(void* elements) noexcept;

  std::shared_ptr<free_list> free_;
};

}  // namespace troupe
