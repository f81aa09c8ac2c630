// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>

#include <c10/core/Device.h>
#include <c10/core/Stream.h>

/// An accelerator made of threads, on libtorch's PrivateUse1 key: two or more devices as asynchronous as a GPU. A test that
/// reads a result too early, or from memory that was given away, sees NaN.
///   SA-1  an operator queues its work on its device's current stream and returns. Only events and synchronisation order two
///         streams.
///   SA-2  memory is NaN until it is written, and NaN again after it was freed. Freed memory stays as it is until all work is
///         done that was queued before on the stream that allocated it and on each stream that recorded a use.
///   SA-3  copies with the host: pageable memory is read at once, and is written before the copy returns. Pinned memory is read
///         or written when the stream runs the copy. A copy that is not `non_blocking` returns when it is done.
///   SA-4  an operator without a kernel of its own synchronises the current streams and runs on the CPU.
namespace troupe::test::simulated {

inline constexpr c10::DeviceIndex most_devices = 4;

/// Registers the accelerator with libtorch, with at most `most_devices` devices. To be called before the first tensor on the
/// accelerator. A later call has no effect; it throws c10::Error if it asks for another number of devices.
void install(c10::DeviceIndex devices = 2);

/// The number of devices of this program.
c10::DeviceIndex device_count();

/// From now on memory is as fast as a caching allocator's, for benchmarks: it has no NaN, and is used again at once (not SA-2).
void use_plain_memory();

c10::Device device(c10::DeviceIndex index = 0);

/// A stream with a thread of its own, besides the default stream.
c10::Stream new_stream(c10::DeviceIndex index = 0);

/// Holds up a stream until the gate is opened or destroyed.
class gate {
 public:
  explicit gate(c10::Stream stream);
  ~gate();
  gate(const gate&) = delete;
  gate& operator=(const gate&) = delete;
  void open() noexcept;

 private:
  std::shared_ptr<bool> open_;
};

/// Returns when every stream is idle or held up by a gate or an event: all work that could run too early has run.
void settle();

/// Returns when every stream is idle.
void synchronize();

/// How often streams were told to wait for an event, since the program began.
std::size_t waits();

/// While an object of this class lives, waiting for an event of the device throws c10::Error and the device's streams compute
/// nothing more, as after a kernel that failed. Without `which` all devices are broken. At most one such object lives at a time.
class broken_device {
 public:
  explicit broken_device(std::optional<c10::DeviceIndex> which = std::nullopt);
  ~broken_device();
  broken_device(const broken_device&) = delete;
  broken_device& operator=(const broken_device&) = delete;
};

/// While an object of this class lives, recording an event throws c10::Error.
class no_events {
 public:
  no_events();
  ~no_events();
  no_events(const no_events&) = delete;
  no_events& operator=(const no_events&) = delete;
};

/// While an object of this class lives, libtorch from 2.13 on is told that the stream is in a graph capture. The stream works as
/// always. At most one such object lives at a time.
class captured {
 public:
  explicit captured(c10::Stream stream);
  ~captured();
  captured(const captured&) = delete;
  captured& operator=(const captured&) = delete;
};

/// While an object of this class lives, the question whether an event has happened does not return.
class stuck_driver {
 public:
  stuck_driver();
  ~stuck_driver();
  stuck_driver(const stuck_driver&) = delete;
  stuck_driver& operator=(const stuck_driver&) = delete;

  /// Returns when a thread has asked in the object's life.
  static void wait_for_question();
};

/// While an object of this class lives, no device from index `begin` on has a primary context.
class unused_devices {
 public:
  explicit unused_devices(c10::DeviceIndex begin = 0);
  ~unused_devices();
  unused_devices(const unused_devices&) = delete;
  unused_devices& operator=(const unused_devices&) = delete;

  /// How often a thread has set its current device in the object's life. On a GPU the first time makes a context.
  static int uses();
};

/// While an object of this class lives, the devices have memory for so many more tensors. Asking for one more throws
/// c10::OutOfMemoryError, as on a GPU, and so does each later request.
class scarce_memory {
 public:
  explicit scarce_memory(int tensors);
  ~scarce_memory();
  scarce_memory(const scarce_memory&) = delete;
  scarce_memory& operator=(const scarce_memory&) = delete;

  /// Whether a request was refused in the object's life.
  static bool refused();
};

/// Bytes of the devices' memory in use.
std::size_t used_bytes();

/// Bytes that copies between the devices and the host had, since the program began.
std::size_t host_bytes();

/// How many copies between the devices and the host there were, since the program began.
std::size_t host_copies();

/// Bytes of pinned memory in use.
std::size_t pinned_bytes();

/// While an object of this class lives, asking for pinned memory throws c10::Error.
class no_pinned_memory {
 public:
  no_pinned_memory();
  ~no_pinned_memory();
  no_pinned_memory(const no_pinned_memory&) = delete;
  no_pinned_memory& operator=(const no_pinned_memory&) = delete;
};

/// While an object of this class lives, `what` runs before pinned memory is freed, on the thread that frees the memory. At most
/// one such object lives at a time.
class before_pinned_memory_is_freed {
 public:
  explicit before_pinned_memory_is_freed(std::function<void()> what);
  ~before_pinned_memory_is_freed();
  before_pinned_memory_is_freed(const before_pinned_memory_is_freed&) = delete;
  before_pinned_memory_is_freed& operator=(const before_pinned_memory_is_freed&) = delete;
};

}  // namespace troupe::test::simulated
