// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include <troupe/devices/cuda/grid.hpp>

namespace troupe::test {

/// Calls `body` for each thread of a grid, in an order drawn from `seed`: a GPU promises no order either.
template <class Body>
void for_each_thread(std::uint64_t blocks, unsigned seed, Body body) {
  std::mt19937 random(seed);
  std::vector<std::uint32_t> threads(devices::cuda::threads_in_block);
  std::iota(threads.begin(), threads.end(), 0);
  std::vector<std::uint64_t> order(blocks);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  for (const std::uint64_t block : order) {
    std::shuffle(threads.begin(), threads.end(), random);
    for (const std::uint32_t thread : threads) body(devices::cuda::thread_index{block, thread});
  }
}

}  // namespace troupe::test
