// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include <troupe/devices/cuda/grid.hpp>

/// The body of a kernel that converts each element of an array (messages/half_floats.hpp has the conversions).
///   KV-1  over a grid of conversion_blocks() blocks, each element is converted once, and no memory beside them is touched.
namespace troupe::devices::cuda {

inline constexpr std::uint32_t converted_by_thread = 8;

TROUPE_HOST_DEVICE constexpr std::uint64_t conversion_blocks(std::uint64_t count) {
  return parts_of(count, std::uint64_t{threads_in_block} * converted_by_thread);
}

/// Neighbouring threads convert neighbouring elements.
template <auto Convert, class From, class To>
TROUPE_HOST_DEVICE inline void convert_part(const From* from, To* to, std::uint64_t count, thread_place at) {
  std::uint64_t element = at.block * threads_in_block * converted_by_thread + at.thread;
  for (std::uint32_t i = 0; i < converted_by_thread; ++i, element += threads_in_block)
    if (element < count) to[element] = Convert(from[element]);
}

}  // namespace troupe::devices::cuda
