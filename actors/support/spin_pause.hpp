// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <thread>

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

namespace troupe::detail {

/// Between two looks at something another thread brings: lets others have this core, and its sibling the better part of what
/// they share.
inline void spin_pause() noexcept {
  std::this_thread::yield();
#if defined(__x86_64__) || defined(__i386__)
  for (int i = 0; i < 20; ++i) _mm_pause();
#endif
}

}  // namespace troupe::detail
