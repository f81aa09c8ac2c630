// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/messages/tensor_memory.hpp>

#include <sys/mman.h>
#include <new>
#include <utility>
#include <vector>

#include <c10/core/CPUAllocator.h>

namespace troupe {

namespace {

constexpr std::size_t front_bytes = 64;  // bytes of a block before its elements; keeps the alignment of the elements
constexpr std::size_t page_bytes = 4096;
constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;

}  // namespace

// A block object lies at the start of its own memory.
struct tensor_memory::block {
  std::size_t bytes;  // bytes of the whole block, front included
  std::shared_ptr<free_list> home;
  bool was_used = true;  // since the last trim()

  static block* map(std::size_t bytes) {
    void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc{};
    // Zeroing pages of 4 KiB takes three times as long as pages of 2 MiB. The first 2 MiB keep small pages, because a transfer
    // may end after its first bytes.
    if (bytes > 2 * huge_page_bytes)
      ::madvise(static_cast<char*>(memory) + huge_page_bytes, bytes - huge_page_bytes, MADV_HUGEPAGE);
    return new (memory) block{bytes, nullptr};
  }

  void unmap() noexcept {
    const std::size_t all = bytes;
    this->~block();
    ::munmap(this, all);
  }
};

tensor_memory::free_list::~free_list() {
  for (block* each : blocks_) each->unmap();
}

tensor_memory::block* tensor_memory::free_list::take(std::size_t bytes) noexcept {
  checked_lock lock(mutex_);
  limit_ = most_kept_;
  for (auto at = blocks_.rbegin(); at != blocks_.rend(); ++at) {
    if ((*at)->bytes >= bytes && (*at)->bytes <= bytes + bytes / 4) {
      block* found = *at;
      blocks_.erase(std::next(at).base());
      bytes_ -= found->bytes;
      return found;
    }
  }
  return nullptr;
}

void tensor_memory::free_list::give(block* freed) noexcept {
  std::vector<block*> dropped;
  {
    checked_lock lock(mutex_);
    if (freed->bytes > limit_) {  // in the list, this block would displace all other blocks and then be freed too
      dropped.push_back(freed);
    } else {
      freed->was_used = true;
      blocks_.push_back(freed);
      bytes_ += freed->bytes;
    }
    while (bytes_ > limit_) {
      bytes_ -= blocks_.front()->bytes;
      dropped.push_back(blocks_.front());
      blocks_.pop_front();
    }
  }
  for (block* each : dropped) each->unmap();
}

std::size_t tensor_memory::free_list::bytes() const {
  checked_lock lock(mutex_);
  return bytes_;
}

bool tensor_memory::free_list::trim() {
  std::vector<block*> dropped;
  bool is_more_kept = false;
  {
    checked_lock lock(mutex_);
    std::size_t freed = 0;
    for (auto each = blocks_.begin(); each != blocks_.end();) {
      const bool was_used = std::exchange((*each)->was_used, false);
      if (was_used || bytes_ <= kept_bytes || freed >= kept_bytes) {
        ++each;
        continue;
      }
      bytes_ -= (*each)->bytes;
      freed += (*each)->bytes;
      dropped.push_back(*each);
      each = blocks_.erase(each);
    }
    is_more_kept = bytes_ > kept_bytes;
    if (!is_more_kept) limit_ = kept_bytes;
  }
  for (block* each : dropped) each->unmap();
  return is_more_kept;
}

std::size_t tensor_memory::kept() const { return free_->bytes(); }

bool tensor_memory::trim() { return free_->trim(); }

void tensor_memory::release(void* elements) noexcept {
  auto* freed = reinterpret_cast<block*>(static_cast<char*>(elements) - front_bytes);
  const auto home = std::exchange(freed->home, nullptr);  // a free block must not keep the list alive
  home->give(freed);
}

c10::Storage tensor_memory::make(std::uint64_t bytes) {
  static_assert(sizeof(block) <= front_bytes);
  const std::size_t all = (bytes + front_bytes + page_bytes - 1) / page_bytes * page_bytes;
  if (all < bytes) throw std::bad_alloc{};
  block* from = free_->take(all);
  if (from == nullptr) from = block::map(all);
  from->home = free_;
  void* elements = reinterpret_cast<char*>(from) + front_bytes;
  return c10::Storage(c10::Storage::use_byte_size_t(), static_cast<std::int64_t>(bytes),
                      c10::DataPtr(elements, elements, &release, c10::Device(c10::kCPU)), c10::GetCPUAllocator(),
                      /*resizable=*/true);
}

}  // namespace troupe
