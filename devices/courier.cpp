// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/devices/courier.hpp>

#include <utility>

namespace troupe::devices {

courier::~courier() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) {
    thread_.join();
  }
}

void courier::post(staged what, send how) {
  {
    const std::lock_guard lock(mutex_);
    if (!what.events.empty() || !parcels_.empty()) {
      parcels_.push_back({std::move(what), std::move(how)});
      if (!thread_.joinable()) {
        thread_ = std::thread([this] { run(); });
      }
      changed_.notify_all();
      return;
    }
  }
  how(nullptr);
}

bool courier::idle() const {
  const std::lock_guard lock(mutex_);
  return parcels_.empty();
}

void courier::finish() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return parcels_.empty(); });
}

void courier::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopping_ || !parcels_.empty(); });
    if (parcels_.empty()) {
      return;
    }
    parcel& next = parcels_.front();  // stays where it is while others are posted
    lock.unlock();
    std::exception_ptr failure;
    try {
      next.what.wait();
    } catch (...) {
      failure = std::current_exception();
    }
    next.how(failure);
    next = {};
    lock.lock();
    parcels_.pop_front();
    changed_.notify_all();
  }
}

}  // namespace troupe::devices
