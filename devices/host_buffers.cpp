// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/devices/host_buffers.hpp>

#include <algorithm>
#include <bit>
#include <deque>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <c10/core/Allocator.h>

#include <troupe/messages/mutex.hpp>

namespace troupe::devices {

namespace {

std::size_t bytes_of_buffer(std::size_t wanted) {
  constexpr std::size_t page = 4096;
  return std::bit_ceil(std::max(wanted, page));
}

}  // namespace

/// Page-locked memory that a tensor uses, or that waits for the next one.
struct host_buffers::buffer {
  buffer() = default;
  buffer(buffer&&) = default;
  buffer& operator=(buffer&&) = default;
  ~buffer() {
    if (memory && !is_over())
      memory.release_context();  // leaks the memory, because a late or failed device may still write to it
  }

  // True if no copy uses the buffer any more.
  bool is_over() const noexcept {
    try {
      return !filled || filled->query();
    } catch (...) {
      return false;  // the device has failed
    }
  }

  c10::DataPtr memory;
  std::shared_ptr<c10::Event> filled;
};

/// The buffers of a pool, which tensors may outlive.
struct host_buffers::shelf {
  bool find_idle(std::size_t bytes, buffer& found) TROUPE_REQUIRES(mutex);
  std::vector<buffer> drop_idle(std::size_t bytes) TROUPE_REQUIRES(mutex);
  bool fits(std::size_t bytes) const TROUPE_REQUIRES(mutex) { return used.in_use + used.idle + bytes <= budget; }

  c10::Allocator* locked_memory = nullptr;
  std::size_t budget = 0;
  mutable checked_mutex mutex;
  // By size; the buffer that came back first is at the front.
  std::map<std::size_t, std::deque<buffer>> idle TROUPE_GUARDED_BY(mutex);
  usage used TROUPE_GUARDED_BY(mutex);
};

host_buffers::host_buffers(c10::DeviceType type, std::size_t budget) : shelf_(std::make_shared<shelf>()) {
  shelf_->locked_memory = at::globalContext().getPinnedMemoryAllocator(type);
  shelf_->budget = budget;
}

// Moves the first idle buffer of `bytes` bytes that no copy uses to `found`. Returns false if there is none.
bool host_buffers::shelf::find_idle(std::size_t bytes, buffer& found) {
  const auto some = idle.find(bytes);
  if (some == idle.end()) return false;
  auto& buffers = some->second;
  const auto first = std::find_if(buffers.begin(), buffers.end(), [](const buffer& each) { return each.is_over(); });
  if (first == buffers.end()) return false;
  found = std::move(*first);
  buffers.erase(first);
  used.idle -= bytes;
  if (buffers.empty()) idle.erase(some);
  return true;
}

// Removes idle buffers, the largest first, until `bytes` more bytes fit into the budget. Returns the removed buffers. The
// caller frees them without the lock, because freeing is slow.
std::vector<host_buffers::buffer> host_buffers::shelf::drop_idle(std::size_t bytes) {
  std::vector<buffer> gone;
  for (auto above = idle.end(); !fits(bytes) && above != idle.begin();) {
    buffer found;
    if (find_idle(std::prev(above)->first, found))
      gone.push_back(std::move(found));
    else
      --above;  // copies still use all buffers of that size
  }
  return gone;
}

at::Tensor host_buffers::allocate(const at::Tensor& like, std::shared_ptr<c10::Event> filled) {
  const auto options = like.options().device(at::kCPU);
  const std::size_t bytes = bytes_of_buffer(like.nbytes());
  buffer own;
  std::vector<buffer> gone;
  {
    const checked_lock lock(shelf_->mutex);
    if (!shelf_->find_idle(bytes, own)) {
      if (shelf_->used.in_use + bytes <= shelf_->budget) gone = shelf_->drop_idle(bytes);
      if (!shelf_->fits(bytes)) {
        ++shelf_->used.refused;
        return at::empty_strided(like.sizes(), like.strides(), options);
      }
    }
    shelf_->used.in_use += bytes;
  }
  gone.clear();
  return lend(std::move(own), bytes, like, std::move(filled));
}

at::Tensor host_buffers::allocate_idle(const at::Tensor& like, std::shared_ptr<c10::Event> filled) {
  const std::size_t bytes = bytes_of_buffer(like.nbytes());
  buffer own;
  {
    const checked_lock lock(shelf_->mutex);
    if (!shelf_->find_idle(bytes, own)) return {};
    shelf_->used.in_use += bytes;
  }
  return lend(std::move(own), bytes, like, std::move(filled));
}

/// Makes a tensor over the buffer, whose `bytes` are counted as in use. Locks memory if the buffer has none.
at::Tensor host_buffers::lend(buffer&& given, std::size_t bytes, const at::Tensor& like, std::shared_ptr<c10::Event>&& filled) {
  try {
    const auto own = std::make_shared<buffer>(std::move(given));
    if (!own->memory) own->memory = shelf_->locked_memory->allocate(bytes);
    own->filled = std::move(filled);
    const auto let_go = [shelf = shelf_, own, bytes](void*) {
      const checked_lock lock(shelf->mutex);
      shelf->used.in_use -= bytes;
      shelf->used.idle += bytes;
      shelf->idle[bytes].push_back(std::move(*own));
    };
    return at::from_blob(own->memory.get(), like.sizes(), like.strides(), let_go, like.options().device(at::kCPU));
  } catch (...) {
    const checked_lock lock(shelf_->mutex);
    shelf_->used.in_use -= bytes;
    throw;
  }
}

host_buffers::usage host_buffers::used() const {
  const checked_lock lock(shelf_->mutex);
  return shelf_->used;
}

}  // namespace troupe::devices
