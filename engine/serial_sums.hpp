// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

#include <troupe/engine/plan.hpp>

namespace troupe::engine {

/// Sums gradients in the order in which one thread would make them with all sources at hand, whatever the order of their
/// arrival. Only a pass that waits for sends, or runs functions at once, needs it: otherwise arrival is that order.
///   SS-1  what comes in its turn is added at once; what comes too early is held until all before it came or were skipped.
class serial_sums {
 public:
  /// `done`: how many functions of the serial order have run, one after the other.
  explicit serial_sums(const plan& graph, std::size_t done = 0);

  /// The gradient along an edge has come for `buffer`, the input `slot`.
  void add(std::uint32_t edge, std::uint32_t slot, at::Tensor& buffer, at::Tensor&& value);

  /// None will come along this edge. Adds nothing by itself, so that no tensor is touched here.
  void skip(std::uint32_t edge) { state_[place_[edge]] = skipped; }

  /// Adds what is still held for the input: everything before it was skipped.
  void settle(std::uint32_t slot, at::Tensor& buffer);

  /// Calls `after(edge, from)` after each sum: what this thread recorded from sequence number `from` on belongs to it.
  void on_sum(std::function<void(std::uint32_t edge, std::uint64_t from)> after);

  void clear() noexcept { held_.clear(); }

 private:
  enum arrival : std::uint8_t { missing, held, skipped };

  std::vector<std::uint32_t> place_;  // of an edge, among all; the places of one slot are neighbours in serial order
  std::vector<std::uint32_t> next_;   // of a slot: the first place not added yet
  std::vector<std::uint32_t> end_;    // of a slot: past its last place
  std::vector<arrival> state_;        // of a place
  std::vector<at::Tensor> held_;      // of a place
  std::vector<std::uint32_t> edge_;   // of a place; with after_sum_ only
  std::function<void(std::uint32_t, std::uint64_t)> after_sum_;
};

}  // namespace troupe::engine
