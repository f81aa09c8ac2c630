// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace troupe::engine {

/// The ready functions of one graph task. The next function is the one of the highest rank and, among functions of that rank,
/// of the highest sequence number.
///   RQ-1  equal entries come out in the order of libtorch's queue (a binary heap of the standard library). So on one thread a
///         pass has libtorch's order, hooks included. In nested passes equal entries may come out in another order.
/// An entry has no nesting depth, because a nested pass is a graph task of its own and ends before the function that started
/// it. In libtorch, one heap holds the ready functions of a nested pass and of the passes around it.
class ready_queue {
 public:
  struct entry {
    std::uint64_t sequence;
    std::uint32_t rank;
    std::uint32_t index;
  };

  void push(entry next) {
    if (has_first_) put(first_);
    has_first_ = heap_.empty() || runs_later(heap_.front(), next);
    if (has_first_)
      first_ = next;
    else
      put(next);
  }

  std::uint32_t pop() {
    if (std::exchange(has_first_, false)) {
      if (leaves_heap_as_it_is()) return first_.index;
      put(first_);
    }
    std::pop_heap(heap_.begin(), heap_.end(), runs_later);
    const std::uint32_t index = heap_.back().index;
    heap_.pop_back();
    return index;
  }

  bool empty() const noexcept { return heap_.empty() && !has_first_; }
  std::size_t size() const noexcept { return heap_.size() + (has_first_ ? 1 : 0); }
  void clear() noexcept {
    heap_.clear();
    has_first_ = false;
  }

 private:
  static bool runs_later(const entry& a, const entry& b) noexcept {
    return a.rank != b.rank ? a.rank < b.rank : a.sequence < b.sequence;
  }

  void put(const entry& next) {
    heap_.push_back(next);
    std::push_heap(heap_.begin(), heap_.end(), runs_later);
  }

  // Whether the heap would be as it is now after `first_` had come in and gone out. The entries on the way of `first_` from the
  // end of the heap to its top would move down by one, and up again, unless an entry equals the other child of its place.
  bool leaves_heap_as_it_is() const noexcept {
    for (std::size_t at = heap_.size(); at > 0; at = (at - 1) / 2) {
      const std::size_t beside = at % 2 == 0 ? at - 1 : at + 1;
      if (beside < heap_.size() && !runs_later(heap_[beside], heap_[(at - 1) / 2])) return false;
    }
    return true;
  }

  std::vector<entry> heap_;
  entry first_{};  // a function that runs before all in the heap. Most functions run as soon as they are ready
  bool has_first_ = false;
};

}  // namespace troupe::engine
