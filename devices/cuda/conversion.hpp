// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include <troupe/devices/cuda/grid.hpp>
#include <troupe/devices/cuda/quads.hpp>

/// The body of a kernel that converts each element of an array to another type. messages/half_floats.hpp has the conversions.
///   KV-1  over a grid of conversion_blocks() blocks, each element is converted once, and no other memory is touched.
namespace troupe::devices::cuda {

// Each thread converts two quads.
inline constexpr std::uint32_t converted_by_thread = 8;

TROUPE_HOST_DEVICE constexpr std::uint64_t conversion_blocks(std::uint64_t count) {
  return ceil_div(count, std::uint64_t{threads_in_block} * converted_by_thread);
}

/// Converts the elements of one thread. Neighbouring threads convert neighbouring quads.
template <auto Convert, class From, class To>
TROUPE_HOST_DEVICE inline void convert_tile(const From* from, To* to, std::uint64_t count, thread_index at) {
  std::uint64_t element = at.block * threads_in_block * converted_by_thread + std::uint64_t{at.thread} * quad_elements;
  for (std::uint32_t i = 0; i < converted_by_thread / quad_elements; ++i, element += threads_in_block * quad_elements) {
    const std::uint32_t left = left_in_quad(element, count);
    const quad<From> read = read_quad(from + element, left);
    quad<To> made{};
    for (std::uint32_t k = 0; k < quad_elements; ++k)
      if (k < left) made.of[k] = Convert(read.of[k]);
    write_quad(to + element, made, left);
  }
}

}  // namespace troupe::devices::cuda
