// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include <troupe/engine/cpu_workers.hpp>

#include "engine/threads.hpp"
#include "support/simulated_accelerator.hpp"

namespace troupe::test::simulated {

/// One worker for the CPU, and one for each device of the simulated accelerator.
class lanes final : public engine::cpu_workers {
 public:
  explicit lanes(std::int64_t grain = 0) : engine::cpu_workers(1, grain) {
    for (c10::DeviceIndex index = 0; index < device_count(); ++index) devices_.push_back(std::make_unique<device_worker>());
  }

  void post(std::function<void()> work) override { cpu_.post(std::move(work)); }
  engine::lane* lane_of(c10::Device device) noexcept override {
    return devices_.at(static_cast<std::size_t>(device.index()))->lane.get();
  }

 private:
  struct device_worker {
    threads thread{1};
    std::shared_ptr<engine::lane> lane = std::make_shared<engine::lane>(
      engine::lane::kind::accelerator, 1, [this](std::function<void()> work) { thread.post(std::move(work)); });
  };

  threads cpu_{1};
  std::vector<std::unique_ptr<device_worker>> devices_;
};

}  // namespace troupe::test::simulated
