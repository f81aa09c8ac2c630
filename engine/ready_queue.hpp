// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace troupe::engine {

/// The functions of one graph task that can run. The next one is that of the highest rank and, within it, of the highest
/// sequence number.
///   RQ-1  equal ones come out in the order of libtorch's queue (a binary heap of the standard library), so that on one thread
///         the order of a pass, hooks included, is libtorch's to the last tie. Not so within nested passes: libtorch's heap
///         then holds what is ready in the outer ones too, and a tie may come out another way.
/// A reentrant pass is a graph task of its own and runs to its end inside the function that started it: deeper first holds
/// without a place in this key.
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
