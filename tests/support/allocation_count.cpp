// SPDX-License-Identifier: BSD-3-Clause
#include "allocation_count.hpp"

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

#include <c10/core/CPUAllocator.h>

namespace troupe::testing {

namespace {

thread_local bool counting = false;
thread_local std::size_t counted = 0;
std::atomic<std::ptrdiff_t> alive{0};

void count(std::size_t bytes) noexcept {
  if (counting) counted += bytes;
}

// libtorch's own allocator with a count, because the memory of tensors does not come from operator new.
class counting_allocator final : public c10::Allocator {
 public:
  counting_allocator() : base_(c10::GetDefaultCPUAllocator()) { c10::SetCPUAllocator(this, 1); }

  c10::DataPtr allocate(std::size_t bytes) override {
    count(bytes);
    return base_->allocate(bytes);
  }
  c10::DeleterFnPtr raw_deleter() const override { return base_->raw_deleter(); }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { base_->copy_data(to, from, bytes); }

 private:
  c10::Allocator* base_;
};

}  // namespace

allocation_count::allocation_count() {
  static auto* allocator = new counting_allocator;  // tensors may outlive every static object
  (void)allocator;
  counted = 0;
  counting = true;
}

allocation_count::~allocation_count() { counting = false; }

std::size_t allocation_count::bytes() const noexcept { return counted; }

void* allocate(std::size_t bytes) {
  count(bytes);
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) {
    alive.fetch_add(1, std::memory_order_relaxed);
    return memory;
  }
  throw std::bad_alloc{};
}

void release(void* memory) noexcept {
  if (memory != nullptr) alive.fetch_sub(1, std::memory_order_relaxed);
  std::free(memory);
}

std::ptrdiff_t blocks_alive() noexcept { return alive.load(std::memory_order_relaxed); }

}  // namespace troupe::testing

// The operators for arrays are replaced too, because a sanitizer's operators for arrays do not call the operators for objects.
void* operator new[](std::size_t bytes) { return troupe::testing::allocate(bytes); }
void operator delete[](void* memory) noexcept { troupe::testing::release(memory); }
void operator delete[](void* memory, std::size_t) noexcept { troupe::testing::release(memory); }
void* operator new(std::size_t bytes) { return troupe::testing::allocate(bytes); }
void operator delete(void* memory) noexcept { troupe::testing::release(memory); }
void operator delete(void* memory, std::size_t) noexcept { troupe::testing::release(memory); }
