// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include <torch/csrc/autograd/function.h>

namespace troupe::engine {

/// What functions cost: the last run of each kind, told apart by type and by the size of the gradient, to a power of two.
/// Threads may use it at once.
///   CB-1  a kind that was never timed costs `unknown`. Kinds that share a place forget each other, they are never mixed up.
class cost_book {
 public:
  static constexpr std::int64_t unknown = -1;  // nanoseconds otherwise

  using kind = std::uint64_t;
  static kind kind_of(const torch::autograd::Node& function, const torch::autograd::variable_list& inputs);

  std::int64_t cost(kind of) const noexcept;
  void note(kind of, std::int64_t nanoseconds) noexcept;

 private:
  static constexpr std::size_t places = 1024;

  std::array<std::atomic<std::uint64_t>, places> entries_{};  // the kind's tag above, the cost below
};

}  // namespace troupe::engine
