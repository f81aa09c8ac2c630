// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/engine/nested_test.cpp, tests/devices/lanes_test.cpp
#pragma once

#include <vector>

#include <c10/core/Device.h>
#include <c10/core/Stream.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

namespace troupe::engine {

/// The current devices and streams of the constructing thread. libtorch's thread-local state does not include these.
class current_streams {
 public:
  current_streams();

  /// Makes the devices and streams those of the calling thread.
  void set() const;

 private:
  struct stream {
    const c10::impl::DeviceGuardImplInterface* device;
    c10::Stream current;
  };
  struct device {
    const c10::impl::DeviceGuardImplInterface* type;
    c10::Device current;
  };
  std::vector<stream> streams_;
  std::vector<device> devices_;
};

}  // namespace troupe::engine
