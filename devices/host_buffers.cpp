// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/devices/host_buffers.hpp>

#include <algorithm>
#include <bit>
#include <deque>
#include <iterator>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <c10/core/Allocator.h>

namespace troupe::devices {

namespace {

constexpr std::size_t page = 4096;

}  // namespace

struct host_buffers::shelf {
  struct buffer {
    buffer() = default;
    buffer(buffer&&) = default;
    buffer& operator=(buffer&&) = default;
    ~buffer() {
      if (memory && !is_over())
        memory.release_context();  // leaks the memory: no thread knows when a late or failed device stops writing to it
    }

    // True if no transfer writes to the buffer any more.
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

  bool find_idle(std::size_t bytes, buffer& found);
  std::vector<buffer> make_room(std::size_t bytes);
  bool has_room(std::size_t bytes) const { return used.in_use + used.idle + bytes <= budget; }

  c10::Allocator* locked_memory = nullptr;
  std::size_t budget = 0;
  mutable std::mutex mutex;                        // guards the members below
  std::map<std::size_t, std::deque<buffer>> idle;  // by size; the buffer that came back first is at the front
  usage used;
};

host_buffers::host_buffers(c10::DeviceType type, std::size_t budget) : shelf_(std::make_shared<shelf>()) {
  shelf_->locked_memory = at::globalContext().getPinnedMemoryAllocator(type);
  shelf_->budget = budget;
}

// Takes the first idle buffer of that size that no transfer fills any more. Precondition: the lock is held.
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

// Removes idle buffers, the largest first, until there is room. The caller frees these buffers without the lock, because
// freeing is slow. Precondition: the lock is held.
std::vector<host_buffers::shelf::buffer> host_buffers::shelf::make_room(std::size_t bytes) {
  std::vector<buffer> gone;
  for (auto above = idle.end(); !has_room(bytes) && above != idle.begin();) {
    buffer found;
    if (find_idle(std::prev(above)->first, found))
      gone.push_back(std::move(found));
    else
      --above;  // transfers still fill all buffers of that size
  }
  return gone;
}

at::Tensor host_buffers::allocate(const at::Tensor& like, std::shared_ptr<c10::Event> filled) {
  const auto options = like.options().device(at::kCPU);
  const std::size_t bytes = std::bit_ceil(std::max(like.nbytes(), page));
  auto own = std::make_shared<shelf::buffer>();
  std::vector<shelf::buffer> gone;
  {
    const std::lock_guard lock(shelf_->mutex);
    if (!shelf_->find_idle(bytes, *own)) {
      if (shelf_->used.in_use + bytes <= shelf_->budget) gone = shelf_->make_room(bytes);
      if (!shelf_->has_room(bytes)) {
        ++shelf_->used.refused;
        return at::empty_strided(like.sizes(), like.strides(), options);
      }
    }
    shelf_->used.in_use += bytes;
  }
  try {
    gone.clear();
    if (!own->memory) own->memory = shelf_->locked_memory->allocate(bytes);
    own->filled = std::move(filled);
    const auto let_go = [shelf = shelf_, own, bytes](void*) {
      const std::lock_guard lock(shelf->mutex);
      shelf->used.in_use -= bytes;
      shelf->used.idle += bytes;
      shelf->idle[bytes].push_back(std::move(*own));
    };
    return at::from_blob(own->memory.get(), like.sizes(), like.strides(), let_go, options);
  } catch (...) {
    const std::lock_guard lock(shelf_->mutex);
    shelf_->used.in_use -= bytes;
    throw;
  }
}

host_buffers::usage host_buffers::used() const {
  const std::lock_guard lock(shelf_->mutex);
  return shelf_->used;
}

}  // namespace troupe::devices
