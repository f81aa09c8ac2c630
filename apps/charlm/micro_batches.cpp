// SPDX-License-Identifier: BSD-3-Clause
#include "apps/charlm/micro_batches.hpp"

#include <numeric>
#include <stdexcept>
#include <string>

#include <ATen/ATen.h>

namespace troupe::apps::charlm {

std::vector<std::int64_t> micro_batch_sizes(std::int64_t windows, std::int64_t count) {
  if (count < 1 || windows < count)
    throw std::runtime_error("expected 1 to " + std::to_string(windows) + " micro-batches for a batch of " + std::to_string(windows) +
                             ", but --micro-batches is " + std::to_string(count));
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(count), windows / count);
  for (std::int64_t i = 0; i < windows % count; ++i)
    ++sizes[static_cast<std::size_t>(i)];
  return sizes;
}

std::vector<micro_batch> cut(const batch& whole, const std::vector<std::int64_t>& sizes) {
  const auto all = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
  std::vector<micro_batch> parts;
  std::int64_t at = 0;
  for (const auto size : sizes) {
    const batch windows{whole.inputs.narrow(0, at, size), whole.targets.narrow(0, at, size)};
    parts.push_back({windows, static_cast<double>(size) / static_cast<double>(all)});
    at += size;
  }
  return parts;
}

}  // namespace troupe::apps::charlm
