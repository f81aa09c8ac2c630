// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

namespace troupe::testing {

/// Counts the bytes that this thread allocates while the object lives: through operator new, and through libtorch's CPU
/// allocator. Freed memory is not subtracted, so the count is at least the peak.
class allocation_count {
 public:
  allocation_count();
  ~allocation_count();
  allocation_count(const allocation_count&) = delete;
  allocation_count& operator=(const allocation_count&) = delete;

  std::size_t bytes() const noexcept;
};

/// The number of blocks that operator new has given, to all threads, and that were not freed since.
std::ptrdiff_t blocks_alive() noexcept;

}  // namespace troupe::testing
