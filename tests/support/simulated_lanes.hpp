// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include <troupe/engine/cpu_workers.hpp>

#include "engine/threads.hpp"
#include "support/simulated_accelerator.hpp"

namespace troupe::test::simulated {

/// One worker for the CPU, and one for each device of the simulated accelerator.
class lanes final : public engine::cpu_workers {
 public:
  explicit lanes(std::int64_t grain = 0) : engine::cpu_workers(1, grain) {}

  void post(std::function<void()> work) override { cpu_.post(std::move(work)); }
  engine::lane* lane_of(c10::Device device) noexcept override {
    return lanes_.at(static_cast<std::size_t>(device.index())).get();
  }

 private:
  static std::shared_ptr<engine::lane> lane_on(threads& worker) {
    return std::make_shared<engine::lane>(engine::lane::kind::accelerator, 1,
                                          [&worker](std::function<void()> work) { worker.post(std::move(work)); });
  }

  threads first_{1};
  threads second_{1};
  threads cpu_{1};
  std::array<std::shared_ptr<engine::lane>, 2> lanes_{lane_on(first_), lane_on(second_)};
};

}  // namespace troupe::test::simulated
