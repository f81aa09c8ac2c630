// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

namespace troupe::testing {

/// Counts what this thread allocates while it lives: through operator new, and through libtorch's CPU allocator.
/// What is freed meanwhile is not taken off, so the count is no less than the peak.
class allocation_count {
 public:
  allocation_count();
  ~allocation_count();
  allocation_count(const allocation_count&) = delete;
  allocation_count& operator=(const allocation_count&) = delete;

  std::size_t bytes() const noexcept;
};

}  // namespace troupe::testing
