// SPDX-License-Identifier: BSD-3-Clause
#include "apps/charlm/figures.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include <troupe/messages/plain_text.hpp>

namespace troupe::apps::charlm {

std::string fixed(double value, int digits) { return fixed_text(value, digits); }

std::string grouped(double value) { return grouped(std::to_string(std::llround(value))); }

std::string grouped(std::string digits) {
  for (auto at = static_cast<int>(digits.size()) - 3; at > (digits[0] == '-' ? 1 : 0); at -= 3)
    digits.insert(static_cast<std::size_t>(at), ",");
  return digits;
}

std::string clock_text(double seconds) {
  const auto all = static_cast<long>(std::max(0.0, std::ceil(seconds)));
  char out[48];
  if (all >= 3600)
    std::snprintf(out, sizeof out, "%ld:%02ld:%02ld", all / 3600, all / 60 % 60, all % 60);
  else
    std::snprintf(out, sizeof out, "%ld:%02ld", all / 60, all % 60);
  return out;
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace troupe::apps::charlm
