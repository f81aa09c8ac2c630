// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/passes/lane_threads.hpp>

#include <string>
#include <system_error>
#include <utility>

#include <caf/actor_system.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>

#include <troupe/actors/network/shared_multiplexer.hpp>
#include <troupe/devices/present_devices.hpp>
#include <troupe/messages/errors.hpp>

namespace troupe::passes {

namespace {

void send(const lane_worker_actor& worker, const lane_threads::wrapper& within, std::function<void()> work) {
  if (within) work = [within, inner = std::move(work)] { within(inner); };
  caf::anon_send(worker, std::make_shared<std::function<void()>>(std::move(work)));
}

}  // namespace

lane_threads::lane_threads(caf::actor_system& system, std::size_t count, wrapper within)
    : system_(system), within_(std::move(within)), type_(devices::accelerator_type()) {
  try {
    for (std::size_t i = 0; i < count; ++i) {
      add(spawn_cpu_worker(system));
      idle_.push_back(count - 1 - i);
    }
    for (c10::DeviceIndex i = 0; type_ && i < devices::accelerator_count(); ++i) {
      const auto& worker = add(spawn_device_worker(system, {*type_, i}));
      lanes_.push_back(std::make_shared<engine::lane>(
        engine::lane::kind::accelerator, 1,
        [worker, within = within_](std::function<void()> work) { send(worker, within, std::move(work)); }));
    }
  } catch (const std::system_error& refused) {
    end();
    throw error(errc::function_failed, "a team of " + std::to_string(count) + " workers got threads for " +
                                         std::to_string(workers_.size()) + " (" + refused.code().message() +
                                         "); ask for fewer, or raise the limit on the process's threads or memory");
  }
}

lane_threads::~lane_threads() { end(); }

void lane_threads::post(std::function<void()> work) {
  std::unique_lock lock(mutex_);
  if (idle_.empty()) return waiting_.push_back(std::move(work));
  const std::size_t worker = idle_.back();
  idle_.pop_back();
  lock.unlock();
  send(workers_[worker], within_, [this, worker, first = std::move(work)]() mutable { serve(worker, std::move(first)); });
}

/// Runs the work, and what has come meanwhile and found no idle worker.
void lane_threads::serve(std::size_t worker, std::function<void()> work) {
  for (;;) {
    work();
    const std::lock_guard lock(mutex_);
    if (waiting_.empty()) return idle_.push_back(worker);
    work = std::move(waiting_.front());
    waiting_.pop_front();
  }
}

engine::lane* lane_threads::lane_of(c10::Device device) noexcept {
  const auto index = static_cast<std::size_t>(device.index());
  return type_ == device.type() && index < lanes_.size() ? lanes_[index].get() : nullptr;
}

const lane_worker_actor& lane_threads::add(lane_worker_actor worker) {
  guards_.push_back(network::guard(system_, worker.id(), network::own_actors::kind::inner));
  return workers_.emplace_back(std::move(worker));
}

void lane_threads::end() noexcept {
  caf::scoped_actor self{system_};
  for (const auto& each : workers_) self->send_exit(each, caf::exit_reason::user_shutdown);
  self->wait_for(workers_);
}

}  // namespace troupe::passes
