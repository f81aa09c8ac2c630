// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/engine/fresh_stack.hpp>

#include <exception>
#include <thread>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/ThreadLocalState.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <troupe/engine/running_pass.hpp>
#include <troupe/engine/warning_relay.hpp>

namespace troupe::engine {

namespace {

// The current devices and streams of a thread. The thread-local state of libtorch does not include these.
class current_streams {
 public:
  current_streams() {
    for (const auto& entry : c10::impl::device_guard_impl_registry) {
      const c10::impl::DeviceGuardImplInterface* const device = entry.load();
      if (device == nullptr || device->type() == c10::DeviceType::CPU || device->type() == c10::DeviceType::Meta) continue;
      for (c10::DeviceIndex i = 0; i < device->deviceCount(); ++i)
        streams_.push_back({device, device->getStream({device->type(), i})});
      if (device->deviceCount() > 0) devices_.push_back({device, device->getDevice()});
    }
  }

  void set() const {
    for (const auto& [device, stream] : streams_) device->exchangeStream(stream);
    for (const auto& [device, current] : devices_) device->setDevice(current);
  }

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

}  // namespace

void on_fresh_stack(const std::function<void()>& what) {
  const at::ThreadLocalState state;
  const current_streams streams;
  running_pass* const outer = running_pass::innermost();
  warning_relay warnings;
  std::exception_ptr thrown;
  std::thread([&] {
    const c10::WarningUtils::WarningHandlerGuard relayed(&warnings);
    try {
      at::init_num_threads();
      streams.set();
      const at::ThreadLocalStateGuard as_there(state);
      const same_passes here(outer);
      what();
    } catch (...) {
      thrown = std::current_exception();
    }
  }).join();
  warnings.replay_and_rethrow(thrown);
}

}  // namespace troupe::engine
