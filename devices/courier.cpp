// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/devices/courier.hpp>

#include <pthread.h>
#include <condition_variable>
#include <deque>
#include <system_error>
#include <utility>

#include <troupe/messages/errors.hpp>

namespace troupe::devices {

namespace {

struct parcel {
  staged what;
  courier::send how;
};

std::exception_ptr too_late() {
  return std::make_exception_ptr(error(errc::stopping, "the node stopped before the device had made the elements"));
}

}  // namespace

struct courier::shared {
  mutable std::mutex mutex;  // guards the members below
  std::condition_variable changed;
  std::deque<parcel> parcels;  // the courier's thread waits for the front parcel, or sends it
  bool finished = false;
  bool at_device = false;  // the thread waits for the device of the front parcel

  void run();
  std::exception_ptr wait_for(const staged& what, std::unique_lock<std::mutex>& lock);
};

courier::courier() : shared_(std::make_shared<shared>()) {}

void courier::post(staged what, send how) {
  std::exception_ptr failure;
  {
    const std::lock_guard lock(shared_->mutex);
    if (shared_->finished) {
      failure = too_late();
    } else if (!what.events.empty() || !shared_->parcels.empty()) {
      try {
        if (!thread_.joinable()) {
          thread_ = std::thread([all = shared_] { all->run(); });
          ::pthread_setname_np(thread_.native_handle(), "troupe.courier");
        }
        shared_->parcels.push_back({std::move(what), std::move(how)});
        shared_->changed.notify_all();
        return;
      } catch (const std::system_error&) {
        failure = std::current_exception();
      }
    }
  }
  how(failure);
}

bool courier::idle() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->parcels.empty();
}

void courier::finish(std::chrono::steady_clock::time_point until) {
  std::unique_lock lock(shared_->mutex);
  shared_->changed.wait_until(lock, until, [this] { return shared_->parcels.empty(); });
  shared_->finished = true;
  shared_->changed.notify_all();
  std::deque<send> late;
  for (auto& each : shared_->parcels)
    if (auto how = std::exchange(each.how, nullptr)) late.push_back(std::move(how));
  const bool stuck = shared_->at_device;
  lock.unlock();
  if (thread_.joinable())
    stuck ? thread_.detach() : thread_.join();  // before the late parcels: the thread may still send a parcel that was in time
  for (const auto& how : late) how(too_late());
}

void courier::shared::run() {
  std::unique_lock lock(mutex);
  for (;;) {
    changed.wait(lock, [this] { return finished || !parcels.empty(); });
    if (finished) return;
    auto& next = parcels.front();  // stays in its place while other threads post
    const auto failure = wait_for(next.what, lock);
    if (const auto how = std::exchange(next.how, nullptr)) {
      lock.unlock();
      how(failure);
      lock.lock();
    }
    parcels.pop_front();
    changed.notify_all();
  }
}

std::exception_ptr courier::shared::wait_for(const staged& what, std::unique_lock<std::mutex>& lock) {
  at_device = true;
  lock.unlock();
  std::exception_ptr failure;
  try {
    what.wait();
  } catch (...) {
    failure = std::current_exception();
  }
  lock.lock();
  at_device = false;
  return failure;
}

void transfers::post(staged what, courier::send how) {
  std::unique_lock lock(mutex_);
  if (finished_) {
    lock.unlock();
    return how(too_late());
  }
  auto& messenger = couriers_[what.events.front()->device_index()];
  lock.unlock();
  messenger.post(std::move(what), std::move(how));
}

void transfers::finish(std::chrono::steady_clock::time_point until) {
  std::unique_lock lock(mutex_);
  finished_ = true;
  lock.unlock();
  for (auto& [device, messenger] : couriers_) messenger.finish(until);
}

}  // namespace troupe::devices
