// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <thread>

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

namespace troupe::detail {

/// To be called in a loop that polls for a value of another thread, between two reads. Yields the core to other threads. If the
/// core has two hardware threads, leaves most of the core's capacity to the other hardware thread.
inline void spin_pause() noexcept {
  std::this_thread::yield();
#if defined(__x86_64__) || defined(__i386__)
  for (int i = 0; i < 20; ++i) _mm_pause();
#endif
}

}  // namespace troupe::detail
