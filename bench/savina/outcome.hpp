// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/bench/savina/programs_test.cpp
#pragma once

#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace troupe::bench::savina {

/// What a program finds out. It is compared with what the parameters let expect.
struct result {
  std::int64_t value = 0;
  std::vector<double> trips_us{};  // of each message and its answer, if the parameter `trips` asks for them
};

/// A result that an actor sets and the thread of a program waits for. Copies are of the same result.
class outcome {
 public:
  void set(std::int64_t value, std::vector<double> trips_us = {}) { promise_->set_value({value, std::move(trips_us)}); }
  /// Throws std::runtime_error if no actor has set a result within `patience`.
  result wait(std::chrono::seconds patience = std::chrono::seconds(60)) {
    auto set = promise_->get_future();
    if (set.wait_for(patience) != std::future_status::ready)
      throw std::runtime_error("expected a result within " + std::to_string(patience.count()) + " s, got none");
    return set.get();
  }

 private:
  std::shared_ptr<std::promise<result>> promise_ = std::make_shared<std::promise<result>>();
};

/// Random numbers, the same in each language: the generator of Park and Miller.
class numbers {
 public:
  explicit numbers(std::int64_t seed) : last_(seed + 1) {}
  /// At least 0 and below `end`.
  std::int64_t below(std::int64_t end) {
    last_ = last_ * 16'807 % 2'147'483'647;
    return last_ % end;
  }

 private:
  std::int64_t last_;
};

/// Work of an actor beside messages: so many random numbers. Returns the sum of their last bits.
inline std::int64_t work(std::int64_t seed, std::int64_t steps) {
  numbers drawn(seed);
  std::int64_t sum = 0;
  for (std::int64_t i = 0; i < steps; ++i) sum += drawn.below(2);
  return sum;
}

}  // namespace troupe::bench::savina
