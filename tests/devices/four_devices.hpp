// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <c10/core/Stream.h>
#include <c10/core/StreamGuard.h>

#include "support/nested_pass.hpp"
#include "support/simulated_fixture.hpp"

namespace troupe::test {

/// An accelerator with four devices. A test program that has this fixture can't have simulated::fixture too.
struct four_devices : simulated::fixture {
  four_devices() : fixture(4) {
    for (const c10::Device device : all) defaults.emplace_back(c10::Stream::DEFAULT, device);
  }

  static std::vector<c10::Stream> new_streams() {
    std::vector<c10::Stream> result;
    for (c10::DeviceIndex index = 0; index < 4; ++index) result.push_back(simulated::new_stream(index));
    return result;
  }

  static const std::vector<c10::Stream>& own_streams() {
    static const std::vector<c10::Stream> of_program = new_streams();
    return of_program;
  }

  const c10::Device third = simulated::device(2);
  const c10::Device fourth = simulated::device(3);
  const std::vector<c10::Device> all{first, second, third, fourth};
  const std::vector<c10::Stream>& own = own_streams();  // a stream of each device, besides its default stream
  std::vector<c10::Stream> defaults;                    // the default stream of each device
};

inline std::size_t index_of(c10::Device device) { return static_cast<std::size_t>(device.index()); }

/// Runs `compute` on the stream, and waits for all devices.
inline at::Tensor on(const c10::Stream& stream, const std::function<at::Tensor()>& compute) {
  const c10::StreamGuard guard(stream);
  auto result = compute();
  simulated::synchronize();
  return result;
}

/// Lets what runs on one device wait until the others have come too.
class meeting_of_devices {
 public:
  explicit meeting_of_devices(std::size_t devices) : expected_(devices) {}

  /// Returns when all devices have come, false if one has not come for a minute.
  bool come(c10::Device device) {
    std::unique_lock lock(mutex_);
    here_.insert(device.str());
    changed_.notify_all();
    return changed_.wait_for(lock, std::chrono::minutes(1), [&] { return here_.size() == expected_; });
  }

 private:
  const std::size_t expected_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<std::string> here_;
};

/// For nested_pass: applies the function on the next device, on the stream of that device in `streams`, and brings the value
/// back. After the last device of `streams` comes the first one.
struct value_of_next_device {
  static inline std::vector<c10::Stream> streams;

  static at::Tensor of(const at::Tensor& x, const std::function<at::Tensor(const at::Tensor&)>& next) {
    const auto here =
      std::find_if(streams.begin(), streams.end(), [&](const auto& each) { return each.device() == x.device(); });
    const c10::StreamGuard there(here == streams.end() || here + 1 == streams.end() ? streams.front() : *(here + 1));
    const auto moved = x.to(there.current_device());
    return (next(moved) + moved).to(x.device());
  }
};

/// With depth n, the gradient is n + 2.
using pass_on_next_device = nested_pass<value_of_next_device>;

}  // namespace troupe::test
