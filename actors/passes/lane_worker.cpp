// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/passes/lane_worker.hpp>

#include <tuple>
#include <utility>

#include <c10/core/impl/VirtualGuardImpl.h>

#include <troupe/actors/support/thread_actor.hpp>

namespace troupe::passes {

namespace {

lane_worker_actor spawn_worker(caf::actor_system& system, const char* name, c10::Device device, support::thread_stay_ptr stay) {
  const auto make = [device, stay = std::move(stay)](const lane_worker_actor&) {
    return std::tuple{[device, stay, is_bound = device.is_cpu()](lane_work_ptr& work) mutable {
      if (!std::exchange(is_bound, true)) c10::impl::VirtualGuardImpl(device.type()).uncheckedSetDevice(device);
      stay->outside([&] { (*std::exchange(work, nullptr))(); });
    }};
  };
  return support::spawn_handlers_with_thread<lane_worker_actor>(system, name, make);
}

}  // namespace

lane_worker_actor spawn_cpu_worker(caf::actor_system& system, support::thread_stay_ptr stay) {
  return spawn_worker(system, "troupe.worker", c10::Device(c10::kCPU), std::move(stay));
}

lane_worker_actor spawn_device_worker(caf::actor_system& system, c10::Device device, support::thread_stay_ptr stay) {
  return spawn_worker(system, "troupe.device", device, std::move(stay));
}

}  // namespace troupe::passes
