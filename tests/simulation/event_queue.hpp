// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

namespace troupe::simulation {

/// The clock of a simulation, and what is planned on it.
///   EQ-1  events happen in the order of their times. Events of one time happen in the order in which they were planned.
///   EQ-2  the clock never goes back. While an event happens, the clock shows the time of the event.
class event_queue {
 public:
  using action = std::function<void()>;
  static constexpr std::int64_t for_ever = std::numeric_limits<std::int64_t>::max();

  explicit event_queue(std::int64_t now_ns = 0) : now_(now_ns) {}

  std::int64_t now_ns() const noexcept { return now_; }
  /// The number of events that have happened. While an event happens, its own number.
  std::uint64_t happened() const noexcept { return happened_; }
  std::size_t waiting() const noexcept { return heap_.size(); }

  /// Plans an event. A time that is over counts as now.
  void at(std::int64_t due_ns, action what);
  void in(std::int64_t delay_ns, action what) { at(now_ + delay_ns, std::move(what)); }

  /// Lets the next event happen, if it is due until `end_ns`. Returns whether one has happened.
  bool step(std::int64_t end_ns = for_ever);
  /// Lets all events happen that are due until `end_ns`. The clock shows `end_ns` then.
  void run_until(std::int64_t end_ns);

 private:
  struct entry {
    std::int64_t due_ns;
    std::uint64_t number;
    std::size_t slot;
  };
  static bool is_later(const entry& one, const entry& other) noexcept {
    return one.due_ns != other.due_ns ? one.due_ns > other.due_ns : one.number > other.number;
  }

  std::int64_t now_;
  std::uint64_t planned_ = 0;
  std::uint64_t happened_ = 0;
  std::vector<entry> heap_;
  std::vector<action> slots_;  // apart from the heap, which moves its entries often
  std::vector<std::size_t> free_;
};

}  // namespace troupe::simulation
