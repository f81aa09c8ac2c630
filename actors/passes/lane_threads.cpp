// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/passes/lane_threads.hpp>

#include <algorithm>
#include <deque>
#include <iterator>
#include <string>
#include <system_error>
#include <utility>

#include <c10/util/Exception.h>
#include <caf/actor_system.hpp>
#include <caf/after.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>

#include <troupe/actors/services/node_network.hpp>
#include <troupe/actors/support/logger_release.hpp>
#include <troupe/actors/support/texts.hpp>
#include <troupe/devices/present_devices.hpp>
#include <troupe/messages/errors.hpp>
#include <troupe/messages/mutex.hpp>

namespace troupe::passes {

namespace {

constexpr std::chrono::milliseconds between_looks{1};  // after the stop limit, end() looks this often for workers without work

}  // namespace

/// The work that waits for a CPU worker. A worker that ends late outlives the lane_threads object, so both share the queue.
struct lane_threads::queue {
  /// Runs the work, then the work that came meanwhile and found no idle worker.
  void serve(std::size_t worker, std::function<void()> work) {
    for (;;) {
      work();
      const checked_lock lock(mutex);
      if (waiting.empty()) return idle.push_back(worker);
      work = std::move(waiting.front());
      waiting.pop_front();
    }
  }

  checked_mutex mutex;
  std::vector<std::size_t> idle TROUPE_GUARDED_BY(mutex);              // indices of CPU workers
  std::deque<std::function<void()>> waiting TROUPE_GUARDED_BY(mutex);  // work; empty while a worker is idle
};

lane_threads::lane_threads(caf::actor_system& system, std::size_t count, std::optional<std::chrono::milliseconds> stop_limit,
                           const work_runner& within)
    : system_(system), stop_limit_(stop_limit), type_(devices::accelerator_type()), queue_(std::make_shared<queue>()) {
  try {
    for (std::size_t i = 0; i < count; ++i) {
      add(c10::kCPU, [own = queue_, i, within](auto work) { within([&] { own->serve(i, std::move(work)); }); });
      queue_->idle.push_back(count - 1 - i);
    }
    for (c10::DeviceIndex i = 0; type_ && i < devices::accelerator_count(); ++i) {
      add({*type_, i}, within);
      lanes_.push_back(std::make_shared<engine::lane>(
        engine::lane::kind::accelerator, 1,
        [worker = workers_.back()](engine::serve_lane what) { caf::anon_send(worker, std::move(what)); }));
    }
  } catch (const std::system_error& refused) {
    end();
    throw error(errc::function_failed, "a team of " + std::to_string(count) + " workers got threads for " +
                                         std::to_string(workers_.size()) + " (" + refused.code().message() +
                                         "); ask for fewer, or raise the limit on the process's threads or memory");
  }
}

lane_threads::~lane_threads() {
  const auto late = end();
  if (late == 0) return;
  try {
    TORCH_WARN("troupe: ", late, " of ", workers_.size(), " workers have not ended within ",
               support::seconds_text(*stop_limit_), ": a function still runs there, and the thread ends with it.");
  } catch (...) {
    // the program's handler of warnings may throw, but a destructor must not
  }
}

template <class Message>
void lane_threads::send(Message what) {
  checked_unique_lock lock(queue_->mutex);
  if (queue_->idle.empty()) return queue_->waiting.push_back(std::move(what));
  const std::size_t worker = queue_->idle.back();
  queue_->idle.pop_back();
  lock.unlock();
  caf::anon_send(workers_[worker], std::move(what));
}

void lane_threads::post(std::function<void()> work) { send(posted_work{std::move(work)}); }

void lane_threads::call_worker(engine::serve_lane what) { send(std::move(what)); }

engine::lane* lane_threads::lane_of(c10::Device device) noexcept {
  const auto index = static_cast<std::size_t>(device.index());
  return type_ == device.type() && index < lanes_.size() ? lanes_[index].get() : nullptr;
}

void lane_threads::add(c10::Device device, work_runner runner) {
  stays_.push_back(support::new_thread_stay());
  workers_.push_back(spawn_lane_worker(system_, device, std::move(runner), stays_.back()));
  guards_.push_back(services::guard(system_, workers_.back().id(), gate::own_actors::kind::inner));
}

/// Ends the workers. Returns how many workers have not ended within the limit.
std::size_t lane_threads::end() noexcept {
  const support::logger_release lets_go;
  caf::scoped_actor self{system_};
  for (const auto& each : workers_) self->send_exit(each, caf::exit_reason::user_shutdown);
  if (!stop_limit_) {
    self->wait_for(workers_);
    return 0;
  }
  for (const auto& each : workers_) self->monitor(each);
  std::deque<std::function<void()>> never;  // destroyed after the lock is released
  std::size_t late = 0;
  auto until = std::chrono::steady_clock::now() + *stop_limit_;
  for (auto running = workers_.size(); running > 0;) {
    bool is_over = false;
    self->receive([&](const caf::down_msg&) { --running; },
                  caf::after(until - std::chrono::steady_clock::now()) >> [&] { is_over = true; });
    if (!is_over) continue;
    until = std::chrono::steady_clock::now() + between_looks;
    {
      const checked_lock lock(queue_->mutex);
      std::move(queue_->waiting.begin(), queue_->waiting.end(), std::back_inserter(never));
      queue_->waiting.clear();
    }
    for (std::size_t i = 0; i < workers_.size(); ++i)
      if (stays_[i]->leave_alone(system_, caf::actor_cast<caf::actor>(workers_[i]))) {
        ++late;
        --running;
      }
  }
  return late;
}

}  // namespace troupe::passes
