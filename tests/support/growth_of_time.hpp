// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <chrono>

namespace troupe::test {

/// How many times as long `work(large)` takes as `work(small)`, by the shortest of three times each.
template <class Work>
double growth_of_time(const Work& work, int small, int large) {
  const auto shortest = [&](int count) {
    double result = 0;
    for (int round = 0; round < 3; ++round) {
      const auto begin = std::chrono::steady_clock::now();
      work(count);
      const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      result = round == 0 ? took : std::min(result, took);
    }
    return result;
  };
  const double base = shortest(small);
  return shortest(large) / base;
}

}  // namespace troupe::test
