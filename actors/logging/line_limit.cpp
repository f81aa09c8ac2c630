// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/logging/line_limit.hpp>

#include <algorithm>
#include <utility>

namespace troupe::logging {

line_limit::verdict line_limit::ask(const void* kind, std::int64_t now_ns) {
  auto& its = kinds_.try_emplace(kind, bucket{.filled_ns = now_ns}).first->second;
  its.room = std::min(most_at_once, its.room + static_cast<double>(now_ns - its.filled_ns) / static_cast<double>(refill_ns));
  its.filled_ns = now_ns;
  if (its.room < 1) {
    ++its.left_out;
    return {};
  }
  its.room -= 1;
  return {true, std::exchange(its.left_out, 0)};
}

std::uint64_t line_limit::held() {
  std::uint64_t all = 0;
  for (auto& [kind, its] : kinds_) all += std::exchange(its.left_out, 0);
  return all;
}

}  // namespace troupe::logging
