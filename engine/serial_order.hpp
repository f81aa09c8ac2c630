// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/engine/serial_order_test.cpp, tests/engine/serial_sums_test.cpp
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

#include <troupe/engine/plan.hpp>

namespace troupe::engine {

/// Returns the vertices that execute, in serial order: the order of a pass that runs on one thread and has the gradients of all
/// sources at its start. The result is the same before and after functions have run.
std::vector<std::uint32_t> serial_order(const plan& graph);

/// Sums gradients in serial order, in whatever order the gradients arrive. Only a pass that waits for sends, or runs functions
/// in parallel, needs this class. In other passes gradients arrive in serial order.
///   SS-1  a gradient is added as soon as all gradients before it in serial order were added or skipped. Until then the
///         gradient is held.
class serial_sums {
 public:
  /// `done`: the number of functions that have run, from the start of the serial order.
  explicit serial_sums(const plan& graph, std::size_t done = 0);

  /// To be called when the gradient along `edge` has come. `slot`: the input to which the edge leads. `buffer`: the sum of that
  /// input.
  void add(std::uint32_t edge, std::uint32_t slot, at::Tensor& buffer, at::Tensor&& value);

  /// To be called when no gradient will come along `edge`. Adds nothing: the next settle() adds the gradients that waited only
  /// for this edge.
  void skip(std::uint32_t edge) { state_[position_[edge]] = skipped; }

  /// Whether skip() was called for `edge`.
  bool is_skipped(std::uint32_t edge) const { return state_[position_[edge]] == skipped; }

  /// Whether a gradient, defined or not, has come for the input.
  bool is_reached(std::uint32_t slot) const {
    const auto first = state_.begin() + (slot == 0 ? 0 : end_[slot - 1]);
    return std::find(first, state_.begin() + end_[slot], held) != state_.begin() + end_[slot];
  }

  /// Adds the held gradients of the input whose turn has come because of skip().
  void settle(std::uint32_t slot, at::Tensor& buffer);

  /// Makes add() and settle() call `after(edge, from)` after each sum. The functions that this thread has recorded since
  /// sequence number `from` belong to the sum.
  void on_sum(std::function<void(std::uint32_t edge, std::uint64_t from)> after);

  void clear() noexcept { held_.clear(); }

 private:
  enum arrival : std::uint8_t { missing, held, skipped };

  std::vector<std::uint32_t> position_;  // by edge: its position; the positions of one slot are consecutive, in serial order
  std::vector<std::uint32_t> next_;      // by slot: the first position that is not added yet
  std::vector<std::uint32_t> end_;       // by slot: one past its last position
  std::vector<arrival> state_;           // by position
  std::vector<at::Tensor> held_;         // by position: the gradient that waits
  std::vector<std::uint32_t> edge_;      // by position: its edge; used with after_sum_ only
  std::function<void(std::uint32_t, std::uint64_t)> after_sum_;
};

}  // namespace troupe::engine
