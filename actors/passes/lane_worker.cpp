// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/passes/lane_worker.hpp>

#include <memory>
#include <tuple>
#include <utility>

#include <c10/core/impl/VirtualGuardImpl.h>

namespace troupe::passes {

lane_worker_actor spawn_lane_worker(caf::actor_system& system, c10::Device device, work_runner runner,
                                    support::thread_stay_ptr stay) {
  const auto make = [device, runner = std::move(runner), stay = std::move(stay)](const lane_worker_actor&) {
    const auto run = [=, is_bound = std::make_shared<bool>(device.is_cpu())](std::function<void()> work) {
      if (!std::exchange(*is_bound, true)) c10::impl::VirtualGuardImpl(device.type()).uncheckedSetDevice(device);
      stay->outside([&] { runner(std::move(work)); });
    };
    return std::tuple{[run](engine::serve_lane& what) { run(std::exchange(what, {})); },
                      [run](posted_work& what) { run(std::exchange(what.work, nullptr)); }};
  };
  return support::spawn_handlers_with_thread<lane_worker_actor>(system, device.is_cpu() ? "troupe.worker" : "troupe.device",
                                                                make);
}

}  // namespace troupe::passes
