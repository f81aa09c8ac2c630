// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstdint>
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
    heap_.push_back(next);
    std::push_heap(heap_.begin(), heap_.end(), runs_later);
  }

  std::uint32_t pop() {
    std::pop_heap(heap_.begin(), heap_.end(), runs_later);
    const std::uint32_t index = heap_.back().index;
    heap_.pop_back();
    return index;
  }

  bool empty() const noexcept { return heap_.empty(); }
  std::size_t size() const noexcept { return heap_.size(); }
  void clear() noexcept { heap_.clear(); }

 private:
  static bool runs_later(const entry& a, const entry& b) noexcept {
    return a.rank != b.rank ? a.rank < b.rank : a.sequence < b.sequence;
  }

  std::vector<entry> heap_;
};

}  // namespace troupe::engine
