// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/logging/line_limit.hpp>

#include <algorithm>
#include <utility>

namespace troupe::logging {

double line_limit::room_at(const bucket& its, std::int64_t now_ns) {
  return std::min(most_at_once, its.room + static_cast<double>(now_ns - its.filled_ns) / static_cast<double>(refill_ns));
}

/// Forgets the kinds of which there was no line for so long that nothing is left to know of them.
void line_limit::forget_quiet(std::int64_t now_ns) {
  std::erase_if(kinds_,
                [&](const auto& each) { return each.second.left_out == 0 && room_at(each.second, now_ns) >= most_at_once; });
}

line_limit::verdict line_limit::ask(kind what, std::int64_t now_ns) {
  if (what.about != 0 && kinds_.size() >= most_kinds && !kinds_.contains(what)) {
    forget_quiet(now_ns);
    if (kinds_.size() >= most_kinds) what.about = 0;
  }
  auto& its = kinds_.try_emplace(what, bucket{.filled_ns = now_ns}).first->second;
  its.room = room_at(its, now_ns);
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
