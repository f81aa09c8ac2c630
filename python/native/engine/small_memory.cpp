// SPDX-License-Identifier: BSD-3-Clause
#include "engine/small_memory.hpp"

#include <malloc.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <mutex>
#include <utility>

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

namespace torchtroupe {

namespace {

constexpr std::size_t step = 64;  // libtorch's alignment. The sizes of blocks are its multiples.
constexpr std::size_t largest = std::size_t{64} << 10;
constexpr std::size_t most_kept = std::size_t{8} << 20;

/// The free blocks of a thread, in a list for each size.
class free_blocks {
 public:
  free_blocks() = default;
  free_blocks(const free_blocks&) = delete;
  free_blocks& operator=(const free_blocks&) = delete;
  ~free_blocks() {
    kept_ = most_kept;  // what the thread frees after this is not kept
    for (auto* each : lists_)
      while (each != nullptr) std::free(std::exchange(each, each->next));
  }

  /// Returns null if there is none. `steps`: the size by `step`.
  void* take(std::size_t steps) noexcept {
    auto*& list = lists_[steps - 1];
    if (list == nullptr) return nullptr;
    kept_ -= steps * step;
    return std::exchange(list, list->next);
  }
  void give(void* freed) noexcept {
    const auto steps = ::malloc_usable_size(freed) / step;
    if (steps == 0 || steps > lists_.size() || kept_ + steps * step > most_kept) return std::free(freed);
    kept_ += steps * step;
    auto*& list = lists_[steps - 1];
    list = ::new (freed) block{list};
  }

 private:
  struct block {
    block* next;
  };
  std::array<block*, largest / step> lists_{};
  std::size_t kept_ = 0;
};

thread_local free_blocks mine;

void release(void* elements) {
  c10::profiledCPUMemoryReporter().Delete(elements);
  mine.give(elements);
}

class small_allocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    if (bytes == 0 || bytes > largest) return libtorchs_.allocate(bytes);
    const auto steps = (bytes + step - 1) / step;
    void* elements = mine.take(steps);
    if (elements == nullptr && ::posix_memalign(&elements, step, steps * step) != 0) return libtorchs_.allocate(bytes);
    c10::profiledCPUMemoryReporter().New(elements, bytes);
    return {elements, elements, release, c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return release; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }

 private:
  c10::Allocator& libtorchs_ = *c10::GetDefaultCPUAllocator();
};

}  // namespace

void reuse_memory(bool on) {
  static std::mutex changing;
  static small_allocator ours;
  auto* const libtorchs = c10::GetDefaultCPUAllocator();
  const std::scoped_lock lock(changing);
  if (c10::GetCPUAllocator() == (on ? libtorchs : &ours)) c10::SetCPUAllocator(on ? &ours : libtorchs);
}

}  // namespace torchtroupe
