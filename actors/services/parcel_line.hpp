// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/devices/courier_test.cpp
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <utility>

#include <caf/allowed_unsafe_message_type.hpp>

#include <troupe/devices/staging.hpp>

namespace troupe::services {

/// Staged tensors, and the function that sends them. `send` must not throw. If `send` gets a failure, it sends nothing.
struct parcel {
  devices::staged what;
  std::function<void(std::exception_ptr failure)> send;
};
using parcel_ptr = std::shared_ptr<parcel>;

/// The waiting parcels of one device, in their order. Says how long to pause before the device is asked again. All times are
/// nanoseconds of the steady clock.
///   PN-1  a parcel leaves when it is ready and no parcel before it waits.
///   PN-2  the pause grows with the time that the first parcel has waited at the front. At first there is no pause; later the
///         pause is an eighth of that time, and at most `longest_ns`.
class parcel_line {
 public:
  static constexpr std::int64_t patience_ns = 50'000;
  static constexpr std::int64_t longest_ns = 200'000;

  bool empty() const noexcept { return waiting_.empty(); }

  void add(parcel_ptr next, std::int64_t now_ns) {
    if (waiting_.empty()) begin_ns_ = now_ns;
    waiting_.push_back(std::move(next));
  }

  /// Sends parcels until one is not ready.
  void send_ready(std::int64_t now_ns) {
    while (send_one_if_ready(now_ns)) {
    }
  }

  /// Sends the first parcel if it is ready. False if no parcel waits, or if the first parcel is not ready.
  bool send_one_if_ready(std::int64_t now_ns) {
    if (waiting_.empty()) return false;
    std::exception_ptr failure;
    try {
      if (!waiting_.front()->what.ready()) return false;
    } catch (...) {
      failure = std::current_exception();
    }
    send_front(failure);
    begin_ns_ = now_ns;
    return true;
  }

  void send_rest(const std::exception_ptr& failure) {
    while (!waiting_.empty()) send_front(failure);
  }

  /// How long the first parcel has waited at the front.
  std::int64_t waited_ns(std::int64_t now_ns) const noexcept { return now_ns - begin_ns_; }
  /// How long to sleep; 0: only yield to other threads.
  std::int64_t pause_ns(std::int64_t now_ns) const noexcept { return pause_ns_after(waited_ns(now_ns)); }
  /// How long a thread pauses that has asked devices for so long without an answer (PN-2).
  static std::int64_t pause_ns_after(std::int64_t waited_ns) noexcept {
    return waited_ns < patience_ns ? 0 : std::min(waited_ns / 8, longest_ns);
  }

 private:
  void send_front(const std::exception_ptr& failure) {
    const auto next = std::move(waiting_.front());
    waiting_.pop_front();
    next->send(failure);
  }

  std::deque<parcel_ptr> waiting_;
  std::int64_t begin_ns_ = 0;  // when the first parcel came to the front
};

}  // namespace troupe::services

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::services::parcel_ptr)
