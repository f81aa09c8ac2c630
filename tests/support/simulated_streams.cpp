// SPDX-License-Identifier: BSD-3-Clause
#include "support/simulated_streams.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>

namespace troupe::test::simulated {

stream_set& stream_set::all() {
  static auto* set = new stream_set;
  return *set;
}

stream_set::stream_set() {
  for (c10::DeviceIndex device = 0; device < device_count(); ++device) add(device);  // the default stream is number 0
}

c10::Stream stream_set::add(c10::DeviceIndex device) {
  const std::lock_guard lock(mutex_);
  auto& own = *workers_[device].emplace_back(std::make_unique<worker>());
  own.thread = std::thread([this, &own] { run(own); });
  return c10::Stream(c10::Stream::UNSAFE, simulated::device(device), static_cast<c10::StreamId>(workers_[device].size() - 1));
}

void stream_set::run(worker& own) {
  const c10::AutoGradMode no_grad(false);
  at::set_num_threads(1);
  std::unique_lock lock(mutex_);
  for (;;) {
    own.filled.wait(lock, [&] { return !own.queue.empty(); });
    if (own.queue.front().passable) {
      constexpr std::chrono::microseconds asks_again_after{50};
      const auto& hold = own.queue.front();
      if (hold.changes_elsewhere)
        while (!hold.passable()) changed_.wait_for(lock, asks_again_after);
      else
        changed_.wait(lock, hold.passable);
    } else {
      auto work = std::move(own.queue.front().work);
      lock.unlock();
      work();
      work = nullptr;
      lock.lock();
    }
    own.queue.pop_front();
    changed_.notify_all();
  }
}

stream_set::worker& stream_set::find(const c10::Stream& stream) {
  return *workers_[stream.device_index()].at(static_cast<std::size_t>(stream.id()));
}

void stream_set::put(const c10::Stream& to, task what) {
  const std::lock_guard lock(mutex_);
  auto& own = find(to);
  own.queue.push_back(std::move(what));
  own.filled.notify_one();
}

void stream_set::push(const c10::Stream& to, std::function<void()> work) { put(to, {std::move(work), nullptr, false}); }

/// Work for a broken stream is dropped: the memory that the kernel was to write may be freed.
void stream_set::compute(const c10::Stream& to, std::function<void()> kernel) {
  if (!broken(to.device_index())) push(to, std::move(kernel));
}

void stream_set::hold(const c10::Stream& to, std::function<bool()> passable, bool changes_elsewhere) {
  put(to, {nullptr, std::move(passable), changes_elsewhere});
}

void stream_set::change(const std::function<void()>& what) {
  const std::lock_guard lock(mutex_);
  what();
  changed_.notify_all();
}

void stream_set::record(const event_ptr& which, const c10::Stream& on) {
  std::uint64_t version = 0;
  bool is_idle = false;
  change([&] {
    version = ++which->asked;
    which->device = on.device_index();
    is_idle = find(on).queue.empty();
    if (is_idle) which->recorded = version;
  });
  if (!is_idle) push(on, [this, which, version] { change([&] { which->recorded = std::max(which->recorded, version); }); });
}

void stream_set::wait(const event_ptr& which, const c10::Stream& on) {
  std::uint64_t version = 0;
  {
    const std::lock_guard lock(mutex_);
    version = which->asked;
    ++waits_;
    if (which->recorded >= version) return;
  }
  hold(on, [which, version] { return which->recorded >= version; });
}

bool stream_set::broken(const event_ptr& which) {
  const std::lock_guard lock(mutex_);
  return broken(which->device);
}

bool stream_set::done(const event_ptr& which) {
  const std::lock_guard lock(mutex_);
  return which->recorded >= which->asked;
}

void stream_set::synchronize(const event_ptr& which) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return which->recorded >= which->asked; });
}

bool stream_set::idle(const c10::Stream& stream) {
  const std::lock_guard lock(mutex_);
  return find(stream).queue.empty();
}

void stream_set::synchronize(const c10::Stream& stream) {
  const event_ptr here = std::make_shared<event>();
  record(here, stream);
  synchronize(here);
}

void stream_set::synchronize() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] {
    return std::all_of(std::begin(workers_), std::end(workers_), [](const auto& device) {
      return std::all_of(device.begin(), device.end(), [](const auto& each) { return each->queue.empty(); });
    });
  });
}

void stream_set::settle() {
  const auto stuck = [](const std::unique_ptr<worker>& each) {
    return each->queue.empty() || (each->queue.front().passable && !each->queue.front().passable());
  };
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] {
    return std::all_of(std::begin(workers_), std::end(workers_),
                       [&](const auto& device) { return std::all_of(device.begin(), device.end(), stuck); });
  });
}

std::size_t stream_set::waits() {
  const std::lock_guard lock(mutex_);
  return waits_;
}

c10::Stream new_stream(c10::DeviceIndex index) { return stream_set::all().add(index); }

gate::gate(c10::Stream stream) : open_(std::make_shared<bool>(false)) {
  stream_set::all().hold(stream, [open = open_] { return *open; });
}

gate::~gate() { open(); }

void gate::open() noexcept {
  stream_set::all().change([this] { *open_ = true; });
}

void settle() { stream_set::all().settle(); }

void synchronize() { stream_set::all().synchronize(); }

std::size_t waits() { return stream_set::all().waits(); }

}  // namespace troupe::test::simulated
