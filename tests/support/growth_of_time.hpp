// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <ctime>

namespace troupe::test {

/// How many times as much time of a processor `work(large)` takes as `work(small)`, by the shortest of three times each.
template <class Work>
double growth_of_time(const Work& work, int small, int large) {
  const auto shortest = [&](int count) {
    double result = 0;
    for (int round = 0; round < 3; ++round) {
      const auto begin = std::clock();
      work(count);
      const auto took = static_cast<double>(std::max(std::clock() - begin, std::clock_t{1}));
      result = round == 0 ? took : std::min(result, took);
    }
    return result;
  };
  const double base = shortest(small);
  return shortest(large) / base;
}

}  // namespace troupe::test
