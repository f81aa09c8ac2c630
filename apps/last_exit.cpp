// SPDX-License-Identifier: BSD-3-Clause
#include "last_exit.hpp"

#include <unistd.h>

namespace troupe::apps {

namespace {

constexpr std::chrono::milliseconds glance{20};  // interval between two checks

}  // namespace

last_exit::last_exit(const stop_signal& stop, std::chrono::milliseconds patience, std::function<void()> leave)
    : patience_(patience) {
  thread_ = std::jthread([this, &stop, leave = std::move(leave)](const std::stop_token& disarmed) {
    while (!stop.wait_for(glance))
      if (disarmed.stop_requested()) return;
    for (const auto asked = std::chrono::steady_clock::now(); std::chrono::steady_clock::now() - asked < patience_.load();) {
      if (disarmed.stop_requested()) return;
      std::this_thread::sleep_for(glance);
    }
    if (disarmed.stop_requested()) return;
    leave();
    _exit(128 + stop.number());
  });
}

void last_exit::disarm() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
}

}  // namespace troupe::apps
