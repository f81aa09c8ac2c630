// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/Stream.h>

namespace troupe::devices {

/// An event of a device that streams of several processes can wait for.
class shared_event {
 public:
  virtual ~shared_event() = default;
  /// Queues a wait on `stream`.
  virtual void block(const c10::Stream& stream) = 0;
  /// What another process opens the event with. Pre: memory_sharing::record() has made the event.
  virtual std::string handle() const = 0;
};

/// How processes of one machine reach each other's memory on one type of accelerator. Any thread may call any function. Each
/// function throws a c10::Error with the reason if the system does not do what is asked.
///   MH-1  what open() returns can be read as long as it lives, also after the other process has freed it or has ended.
///   MH-2  open() opens memory and events of the process `process` alone, as far as the accelerator says whose they are. It
///         opens no memory that was freed, and none on a device that this process does not have.
///   MH-3  a stream that waits for an event of another process goes on when the event happens, or when that process ends.
/// CUDA's documentation promises less: it leaves undefined what is read after the owner has freed memory that is still open
/// (MH-1), and a wait for an event of a process that was killed (MH-3).
class memory_sharing {
 public:
  virtual ~memory_sharing() = default;

  /// Where elements lie.
  struct place {
    std::string allocation;    // a handle
    std::uint64_t offset = 0;  // in bytes
  };
  /// Memory of another process. `elements` keeps it open.
  struct opened_memory {
    std::shared_ptr<void> elements;
    std::uint64_t bytes = 0;
    c10::Device device{c10::kCPU};  // of this process
  };

  /// The place of a tensor's elements, which must not be freed while other processes read them.
  virtual place share(const at::Tensor& elements) = 0;
  virtual opened_memory open(std::uint64_t process, const std::string& allocation) = 0;

  /// Records an event. Other processes can open it as long as it lives.
  virtual std::shared_ptr<shared_event> record(const c10::Stream& stream) = 0;
  /// `device`: a device of this process, whose streams are to wait for the event.
  virtual std::shared_ptr<shared_event> open_event(std::uint64_t process, const std::string& handle, c10::Device device) = 0;
};

}  // namespace troupe::devices
