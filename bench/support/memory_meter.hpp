// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <functional>

namespace troupe::bench {

/// The peak, in bytes, of what libtorch's CPU allocator gives out on this thread during `run`, above the level at the start of
/// `run`. Memory that `prepare` has allocated counts as given back when `run` releases it.
std::size_t peak_memory(const std::function<void()>& prepare, const std::function<void()>& run);

}  // namespace troupe::bench
