// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/devices/host_buffers.hpp>

#include <algorithm>
#include <bit>
#include <deque>
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
    c10::DataPtr memory;
    std::shared_ptr<c10::Event> filled;

    void await() const {
      if (filled && !filled->query()) {
        filled->synchronize();
      }
    }
  };

  ~shelf();
  bool find_idle(std::size_t bytes, buffer& found);
  std::vector<buffer> make_room(std::size_t bytes);

  c10::Allocator* locked_memory = nullptr;
  std::size_t budget = 0;
  mutable std::mutex mutex;                        // guards what follows
  std::map<std::size_t, std::deque<buffer>> idle;  // by size; the one that was let go first is at the front
  usage used;
};

// A transfer that nobody waited for, for its device failed, may yet write.
host_buffers::shelf::~shelf() {
  for (auto& [bytes, buffers] : idle) {
    for (auto& each : buffers) {
      try {
        each.await();
      } catch (...) {
        each.memory.release_context();  // of a device that still fails nobody knows when
      }
    }
  }
}

host_buffers::host_buffers(c10::DeviceType type, std::size_t budget) : shelf_(std::make_shared<shelf>()) {
  shelf_->locked_memory = at::globalContext().getPinnedMemoryAllocator(type);
  shelf_->budget = budget;
}

// Pre: the lock is held.
bool host_buffers::shelf::find_idle(std::size_t bytes, buffer& found) {
  const auto some = idle.find(bytes);
  if (some == idle.end()) {
    return false;
  }
  found = std::move(some->second.front());
  some->second.pop_front();
  used.idle -= bytes;
  if (some->second.empty()) {
    idle.erase(some);
  }
  return true;
}

// The largest idle buffers go first. They are freed without the lock: that is slow. Pre: the lock is held.
std::vector<host_buffers::shelf::buffer> host_buffers::shelf::make_room(std::size_t bytes) {
  std::vector<buffer> gone;
  while (used.in_use + used.idle + bytes > budget && !idle.empty()) {
    find_idle(std::prev(idle.end())->first, gone.emplace_back());
  }
  return gone;
}

at::Tensor host_buffers::take(const at::Tensor& like, std::shared_ptr<c10::Event> filled) {
  const auto options = like.options().device(at::kCPU);
  const std::size_t bytes = std::bit_ceil(std::max(like.nbytes(), page));
  auto own = std::make_shared<shelf::buffer>();
  std::vector<shelf::buffer> gone;
  {
    const std::lock_guard lock(shelf_->mutex);
    if (!shelf_->find_idle(bytes, *own)) {
      if (shelf_->used.in_use + bytes > shelf_->budget) {
        ++shelf_->used.refused;
        return at::empty_strided(like.sizes(), like.strides(), options);
      }
      gone = shelf_->make_room(bytes);
    }
    shelf_->used.in_use += bytes;
  }
  try {
    std::for_each(gone.begin(), gone.end(), [](const auto& each) { each.await(); });
    gone.clear();
    own->await();
    if (!own->memory) {
      own->memory = shelf_->locked_memory->allocate(bytes);
    }
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
