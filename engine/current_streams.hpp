// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/engine/nested_test.cpp, tests/devices/lanes_test.cpp, tests/devices/device_events_test.cpp
#pragma once

#include <optional>
#include <vector>

#include <c10/core/Device.h>
#include <c10/core/Stream.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

namespace troupe::engine {

/// Stores the current devices and streams of the constructing thread. libtorch's thread-local state does not include these.
///   CS-1  devices that the process does not use (those without a primary context) are left out, and stay unused.
class current_streams {
 public:
  current_streams();

  /// Makes these devices and streams the current ones of the calling thread.
  void set() const noexcept;

  /// True if the process used no accelerator.
  bool empty() const noexcept { return streams_.empty(); }

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

/// Sets these devices and streams on the calling thread. At the end of the scope, sets those that the thread had before.
class same_streams {
 public:
  explicit same_streams(const current_streams& as) {
    if (as.empty()) return;
    mine_.emplace();
    as.set();
  }
  ~same_streams() {
    if (mine_) mine_->set();
  }
  same_streams(const same_streams&) = delete;
  same_streams& operator=(const same_streams&) = delete;

 private:
  std::optional<const current_streams> mine_;
};

}  // namespace troupe::engine
