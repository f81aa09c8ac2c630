// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <c10/core/Device.h>
#include <c10/core/Stream.h>

namespace troupe::bench {

/// The device that gpu_check looks at: the CPU, or an accelerator of any type.
class gpu_device {
 public:
  explicit gpu_device(c10::Device device) : device_(device) {}

  c10::Device device() const { return device_; }
  /// Returns when all work is done that was queued before.
  void synchronize() const;
  /// Streams of this device besides the current one. None on the CPU.
  std::vector<c10::Stream> streams(std::size_t count) const;
  /// Like "NVIDIA H100 80GB HBM3"; the name of the device if nobody knows more.
  std::string card() const;

 private:
  c10::Device device_;
};

}  // namespace troupe::bench
