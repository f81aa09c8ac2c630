// SPDX-License-Identifier: BSD-3-Clause
#include "size_ladder.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

namespace troupe::bench {

std::vector<std::size_t> sizes_of_ladder(bool quick) {
  std::vector<std::size_t> all;
  for (std::size_t bytes = 64; bytes <= (quick ? std::size_t{1} << 10 : std::size_t{256} << 20); bytes *= 4)
    all.push_back(bytes);
  return all;
}

int turns_of_ladder(std::size_t bytes, bool quick) {
  if (quick) return 1;
  return bytes <= std::size_t{16} << 10 ? 2 : bytes <= std::size_t{1} << 20 ? 4 : 3;
}

row row_of_ladder(const std::vector<ladder_step>& steps) {
  const auto& worst = *std::min_element(
    steps.begin(), steps.end(), [](const ladder_step& one, const ladder_step& other) { return one.ratio() < other.ratio(); });
  auto note = "worst at " + size_text(worst.bytes) + "; all";
  for (const auto& each : steps) {
    std::array<char, 48> text{};
    std::snprintf(text.data(), text.size(), "%s %s %.2f", &each == &steps.front() ? "" : ",", size_text(each.bytes).c_str(),
                  each.ratio());
    note += text.data();
  }
  return {.value = {worst.peer, worst.troupe, 0}, .ratio = worst.ratio(), .note = std::move(note)};
}

std::string size_text(std::size_t bytes) {
  return bytes < 1 << 10   ? std::to_string(bytes) + " B"
         : bytes < 1 << 20 ? std::to_string(bytes >> 10) + " KiB"
                           : std::to_string(bytes >> 20) + " MiB";
}

}  // namespace troupe::bench
