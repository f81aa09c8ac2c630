// SPDX-License-Identifier: BSD-3-Clause
#include "apps/charlm/micro_batches.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <string>

#include <ATen/ATen.h>

namespace troupe::apps::charlm {

std::vector<std::int64_t> micro_batch_sizes(std::int64_t windows, std::int64_t count) {
  if (count < 1 || windows < count)
    throw std::runtime_error("expected 1 to " + std::to_string(windows) + " micro-batches for a batch of " +
                             std::to_string(windows) + ", but --micro-batches is " + std::to_string(count));
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(count), windows / count);
  for (std::int64_t i = 0; i < windows % count; ++i) ++sizes[static_cast<std::size_t>(i)];
  return sizes;
}

batch_cuts share_out(const std::vector<std::int64_t>& sizes, std::int64_t contexts) {
  const auto parts = sizes.size();
  const auto groups = std::min(static_cast<std::size_t>(contexts), parts);
  batch_cuts shares;
  for (std::size_t g = 0; g < groups; ++g)
    shares.emplace_back(sizes.begin() + static_cast<std::ptrdiff_t>(parts * g / groups),
                        sizes.begin() + static_cast<std::ptrdiff_t>(parts * (g + 1) / groups));
  return shares;
}

std::vector<std::vector<micro_batch>> cut(const batch& whole, const batch_cuts& sizes) {
  std::int64_t all = 0;
  for (const auto& group : sizes) all = std::accumulate(group.begin(), group.end(), all);
  std::vector<std::vector<micro_batch>> groups;
  std::int64_t at = 0;
  for (const auto& group : sizes) {
    auto& parts = groups.emplace_back();
    for (const auto size : group) {
      const batch windows{whole.inputs.narrow(0, at, size), whole.targets.narrow(0, at, size)};
      parts.push_back({windows, static_cast<double>(size) / static_cast<double>(all)});
      at += size;
    }
  }
  return groups;
}

}  // namespace troupe::apps::charlm
