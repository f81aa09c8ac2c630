// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include <troupe/messages/float_bits.hpp>

/// The body of a CUDA kernel is a function with the work of one thread of a grid. A kernel calls its body with the index of its
/// thread. A test calls the body on the CPU, once for each thread of the same grid.
namespace troupe::devices::cuda {

/// All kernels run with this number of threads in a block.
inline constexpr std::uint32_t threads_in_block = 256;

/// The largest number of blocks in a grid of one dimension.
inline constexpr std::uint64_t most_blocks = 0x7fffffff;

struct thread_index {
  std::uint64_t block;
  std::uint32_t thread;  // below threads_in_block
};

/// Returns how many groups of `size` elements `count` elements need. The last group may be smaller.
TROUPE_HOST_DEVICE constexpr std::uint64_t ceil_div(std::uint64_t count, std::uint64_t size) {
  return count / size + (count % size != 0);
}

}  // namespace troupe::devices::cuda
