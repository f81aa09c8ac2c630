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

struct block {
  block* next;
};

/// The free blocks of a thread, in a list for each size. The struct has no destructor, so tensors that the thread frees while
/// it ends find it as it is.
struct free_blocks {
  std::array<block*, largest / step> lists;  // the blocks of list i have at least (i + 1) * step bytes
  std::size_t bytes;
  bool has_ended;

  void clear() noexcept {
    for (auto*& each : lists)
      while (each != nullptr) std::free(std::exchange(each, each->next));
    bytes = 0;
  }
};

constinit thread_local free_blocks mine{};

/// Frees the blocks of a thread at its end.
struct end_of_thread {
  ~end_of_thread() {
    mine.has_ended = true;
    mine.clear();
  }
};

/// Returns null if there is none. `steps`: the size by `step`.
void* take(std::size_t steps) noexcept {
  auto*& list = mine.lists[steps - 1];
  if (list == nullptr) return nullptr;
  mine.bytes -= steps * step;
  return std::exchange(list, list->next);
}

void give(void* freed) noexcept {
  static thread_local const end_of_thread of_thread;
  const auto steps = ::malloc_usable_size(freed) / step;
  if (steps == 0 || steps > mine.lists.size() || mine.has_ended) return std::free(freed);
  // Blocks of sizes that are not asked for any more must not keep the others out.
  if (mine.bytes + steps * step > most_kept) mine.clear();
  mine.bytes += steps * step;
  auto*& list = mine.lists[steps - 1];
  list = ::new (freed) block{list};
}

void release(void* elements) {
  c10::profiledCPUMemoryReporter().Delete(elements);
  give(elements);
}

class small_allocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    if (bytes == 0 || bytes > largest) return libtorchs_.allocate(bytes);
    const auto steps = (bytes + step - 1) / step;
    void* elements = take(steps);
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
  static auto& ours = *new small_allocator;  // libtorch and its storages keep the address
  auto* const libtorchs = c10::GetDefaultCPUAllocator();
  const std::scoped_lock lock(changing);
  if (c10::GetCPUAllocator() == (on ? libtorchs : &ours)) c10::SetCPUAllocator(on ? &ours : libtorchs);
}

}  // namespace torchtroupe
