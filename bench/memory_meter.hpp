// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <functional>

namespace troupe::bench {

/// By how many bytes what libtorch's CPU allocator has given out on this thread grew at most during `run`. What `prepare` had
/// allocated counts as given back where `run` releases it.
std::size_t peak_memory(const std::function<void()>& prepare, const std::function<void()>& run);

}  // namespace troupe::bench
