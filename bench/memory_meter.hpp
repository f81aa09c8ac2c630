// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <functional>

namespace troupe::bench {

/// The most bytes that tensors on the CPU took at one time, counting those allocated during `run` alone.
std::size_t peak_memory(const std::function<void()>& run);

}  // namespace troupe::bench
