// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <thread>

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

namespace troupe::detail {

/// To be called between two looks for a value that another thread will store. Yields the core to other threads. On a core with
/// two hardware threads, leaves most of the core to the other one.
inline void spin_pause() noexcept {
  std::this_thread::yield();
#if defined(__x86_64__) || defined(__i386__)
  for (int i = 0; i < 20; ++i) _mm_pause();
#endif
}

}  // namespace troupe::detail
