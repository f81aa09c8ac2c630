// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace torch::autograd {
struct Node;
}

namespace troupe::engine {

/// Maps the address of a function to a number. A hash map with open addressing in one block of memory, at most half full.
class node_map {
 public:
  struct insertion {
    std::uint32_t& index;
    bool fresh;  // the function was not in the map
  };

  /// Returns a reference to the number of the function. If the function is new (`fresh`), the caller sets the number.
  insertion insert(const torch::autograd::Node* function) {
    if (2 * (size_ + 1) > slots_.size()) grow();
    slot& found = probe(function);
    const bool fresh = found.function == nullptr;
    if (fresh) {
      found.function = function;
      ++size_;
    }
    return {found.index, fresh};
  }

  /// Forgets every function. Keeps the memory unless little of it was used.
  void clear() {
    if (slots_.size() > 16 * (size_ + 1)) {
      *this = node_map();
      return;
    }
    std::fill(slots_.begin(), slots_.end(), slot());
    size_ = 0;
  }

  std::size_t memory() const noexcept { return slots_.capacity() * sizeof(slot); }

  /// Returns the number of the function; `otherwise` if the map does not have the function.
  std::uint32_t find(const torch::autograd::Node* function, std::uint32_t otherwise) const {
    if (slots_.empty()) return otherwise;
    const slot& found = const_cast<node_map*>(this)->probe(function);
    return found.function == nullptr ? otherwise : found.index;
  }

 private:
  struct slot {
    const torch::autograd::Node* function = nullptr;
    std::uint32_t index = 0;
  };

  slot& probe(const torch::autograd::Node* function) {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = (reinterpret_cast<std::uintptr_t>(function) * 0x9e3779b97f4a7c15ULL) >> shift_;
    while (slots_[at].function != nullptr && slots_[at].function != function) at = (at + 1) & mask;
    return slots_[at];
  }

  void grow() {
    const std::vector<slot> old = std::move(slots_);
    slots_ = std::vector<slot>(old.empty() ? 16 : 4 * old.size());
    shift_ = old.empty() ? 60 : shift_ - 2;
    for (const slot& s : old)
      if (s.function != nullptr) probe(s.function) = s;
  }

  std::vector<slot> slots_;
  std::size_t size_ = 0;
  int shift_ = 64;
};

}  // namespace troupe::engine
