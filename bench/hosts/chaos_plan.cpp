// SPDX-License-Identifier: BSD-3-Clause
#include "chaos_plan.hpp"

#include <algorithm>
#include <cstdio>

namespace troupe::bench {

namespace {

bool share_something(const chaos_event& one, const chaos_event& other) {
  const auto is_of_process = [](const chaos_event& x) {
    return x.what == chaos_event::kind::kill || x.what == chaos_event::kind::freeze;
  };
  if (is_of_process(one) != is_of_process(other)) return false;
  if (is_of_process(one)) return one.who == other.who;
  if (one.what != other.what) return false;
  return one.who == other.who && one.other == other.other;
}

}  // namespace

std::string chaos_event::text() const {
  constexpr const char* names[] = {"kill the process of ", "freeze the process of ", "unplug ", "cut "};
  char length[32];
  std::snprintf(length, sizeof length, " for %.1f s", std::chrono::duration<double>(end - begin).count());
  return names[static_cast<int>(what)] + who + (what == kind::cut ? " from " + other : "") + length;
}

chaos_event chaos_plan::draw() {
  chaos_event drawn;
  drawn.what = static_cast<chaos_event::kind>(number(0, 3));
  const auto last = static_cast<int>(hosts_.size()) - 1;
  auto who = number(0, last);
  if (drawn.what == chaos_event::kind::cut) {
    auto other = number(0, last - 1);
    if (other >= who) ++other;
    if (other < who) std::swap(who, other);  // a link has one name
    drawn.other = hosts_[static_cast<std::size_t>(other)];
  }
  drawn.who = hosts_[static_cast<std::size_t>(who)];
  drawn.begin = std::chrono::milliseconds(number(0, 4000));
  // Most events are over before the others forget a node, some are not.
  drawn.end = drawn.begin + std::chrono::milliseconds(number(0, 3) > 0 ? number(100, 2500) : number(3500, 7000));
  return drawn;
}

std::vector<chaos_event> chaos_plan::round() {
  std::vector<chaos_event> all;
  for (auto left = number(1, 4); left > 0; --left) {
    const auto drawn = draw();
    if (std::none_of(all.begin(), all.end(), [&](const auto& each) { return share_something(each, drawn); }))
      all.push_back(drawn);
  }
  std::sort(all.begin(), all.end(), [](const auto& one, const auto& other) { return one.begin < other.begin; });
  return all;
}

}  // namespace troupe::bench
