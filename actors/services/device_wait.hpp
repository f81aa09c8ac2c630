// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/devices/courier_test.cpp
#pragma once

#include <sys/prctl.h>

#include <chrono>
#include <cstdint>
#include <thread>

#include <troupe/actors/services/parcel_line.hpp>

namespace troupe::services {

/// Makes the short sleeps of this thread short: otherwise Linux adds 50 us to each.
inline void sleep_precisely() { ::prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL); }

/// Lets some time pass before a thread asks a device again that has not answered for so long (PN-2).
inline void pause_after(std::int64_t waited_ns) {
  const auto for_ns = parcel_line::pause_ns_after(waited_ns);
  for_ns == 0 ? std::this_thread::yield() : std::this_thread::sleep_for(std::chrono::nanoseconds(for_ns));
}

}  // namespace troupe::services
