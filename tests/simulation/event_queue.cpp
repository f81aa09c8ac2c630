// SPDX-License-Identifier: BSD-3-Clause
#include "simulation/event_queue.hpp"

#include <algorithm>
#include <utility>

namespace troupe::simulation {

void event_queue::at(std::int64_t due_ns, action what) {
  std::size_t slot = slots_.size();
  if (free_.empty()) {
    slots_.push_back(std::move(what));
  } else {
    slot = free_.back();
    free_.pop_back();
    slots_[slot] = std::move(what);
  }
  heap_.push_back({std::max(due_ns, now_), planned_++, slot});
  std::push_heap(heap_.begin(), heap_.end(), is_later);
}

bool event_queue::step(std::int64_t end_ns) {
  if (heap_.empty() || heap_.front().due_ns > end_ns) return false;
  std::pop_heap(heap_.begin(), heap_.end(), is_later);
  const auto next = heap_.back();
  heap_.pop_back();
  const auto what = std::exchange(slots_[next.slot], nullptr);
  free_.push_back(next.slot);
  now_ = next.due_ns;
  ++happened_;
  what();
  return true;
}

void event_queue::run_until(std::int64_t end_ns) {
  while (step(end_ns)) {
  }
  now_ = std::max(now_, end_ns);
}

}  // namespace troupe::simulation
