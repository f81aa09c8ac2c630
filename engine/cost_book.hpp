// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include <torch/csrc/autograd/function.h>

namespace troupe::engine {

/// Remembers how long functions took. Threads may use the book concurrently.
/// A kind has three parts: the type of a function; the size of its gradient, rounded to a power of two; the type of the
/// gradient's device. Each kind has an entry, which stores the last time. Several kinds may share an entry.
///   CB-1  cost() gives the last time that was noted for the kind, never the time of another kind. cost() gives `unknown` if no
///         time was noted for the kind, or if a kind that shares its entry was timed later.
class cost_book {
 public:
  static constexpr std::int64_t unknown = -1;  // every other cost is in nanoseconds

  using kind = std::uint64_t;
  static kind kind_of(const torch::autograd::Node& function, at::TensorList inputs);

  std::int64_t cost(kind of) const noexcept;
  void note(kind of, std::int64_t nanoseconds) noexcept;

 private:
  static constexpr std::size_t slots = 1024;

  std::array<std::atomic<std::uint64_t>, slots> entries_{};  // high bits: tag of the kind; low bits: cost
};

}  // namespace troupe::engine
