// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include <c10/core/Event.h>
#include <c10/core/Storage.h>
#include <c10/core/Stream.h>

#include <troupe/devices/memory_sharing.hpp>
#include <troupe/messages/messages.hpp>
#include <troupe/messages/mutex.hpp>

namespace troupe::devices {

/// Elements that a device copies out of the memory of another process.
class foreign_copy {
 public:
  foreign_copy(memory_sharing::opened_memory from, std::shared_ptr<shared_event> made, c10::Storage elements)
      : from_(std::move(from)), made_(std::move(made)), elements_(std::move(elements)) {}
  ~foreign_copy();
  foreign_copy(const foreign_copy&) = delete;
  foreign_copy& operator=(const foreign_copy&) = delete;

  /// Whether all elements have come. Throws the c10::Error of the device if the device failed.
  bool is_done();
  /// Memory of a device of this process.
  const c10::Storage& elements() const { return elements_; }

 private:
  friend class foreign_devices;

  memory_sharing::opened_memory from_;
  std::shared_ptr<shared_event> made_;
  c10::Storage elements_;
  bool begun_ = false;                // whether a device may read `from_`
  std::unique_ptr<c10::Event> done_;  // recorded after the copy; null if it could not be recorded
};

/// Copies elements that nodes of this machine offer out of the memory of their devices: nodes of other processes, and other
/// nodes of this one. Any thread may use it.
///   FD-1  an allocation is opened once and stays open while it is one of the last `most_open` that were used, until forget()
///         of its process. Memory stays open as long as a copy out of it runs.
///   FD-2  a copy waits for the event of its offer, on a stream that only copies out of the same process's memory use. So it
///         waits for no other process, and no other work waits for it.
///   FD-3  no byte is read that lies beyond the end of the allocation, as this process's accelerator says its size.
///   FD-4  the thread does not wait for a device.
class foreign_devices {
 public:
  static constexpr std::size_t default_most_open = 64;

  explicit foreign_devices(std::size_t most_open = default_most_open) : most_open_(most_open) {}

  /// Queues the copy that an offer asks for. Throws troupe::error: `refused` if this process can't open the memory or the
  /// event, `malformed_message` if the offer is wrong, `function_failed` if the device has no memory left.
  std::unique_ptr<foreign_copy> copy(const tensor_offer& offer);
  /// Closes what is open of the memory of the process.
  void forget(std::uint64_t process);

 private:
  using key = std::pair<std::uint64_t, std::string>;  // process and handle
  struct open_allocation {
    key of;
    memory_sharing::opened_memory memory;
  };

  std::pair<memory_sharing::opened_memory, std::shared_ptr<shared_event>> opened_with_event(memory_sharing& sharing,
                                                                                            const tensor_offer& offer);
  memory_sharing::opened_memory opened(memory_sharing& sharing, const tensor_offer& offer);
  const memory_sharing::opened_memory* find(const key& of) TROUPE_REQUIRES(mutex_);
  c10::Stream stream_for(std::uint64_t process, c10::Device device);

  const std::size_t most_open_;
  checked_mutex mutex_;
  std::list<open_allocation> open_ TROUPE_GUARDED_BY(mutex_);  // the one that was used last is at the front
  std::map<std::pair<std::uint64_t, c10::DeviceIndex>, c10::Stream> streams_ TROUPE_GUARDED_BY(mutex_);
};

}  // namespace troupe::devices
