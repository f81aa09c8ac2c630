// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace troupe::test {

/// What the 8-bit codec should make, in doubles: one operation on floats in double, rounded to float, has the bits of the
/// operation in float. So a compiler that joins operations (fma) makes other bits than this one.
struct plain_codec {
  std::vector<std::int8_t> codes;
  std::vector<float> scales;
  std::vector<float> residual;
  std::vector<float> decoded;

  plain_codec(const std::vector<float>& elements, const std::vector<float>& before, std::size_t block = 256) {
    constexpr float nan = std::numeric_limits<float>::quiet_NaN();
    for (std::size_t begin = 0; begin < elements.size(); begin += block) {
      const std::size_t end = std::min(begin + block, elements.size());
      double largest = 0;
      bool finite = true;
      for (std::size_t i = begin; i < end; ++i) {
        finite = finite && std::isfinite(sum(elements[i], before[i]));
        largest = std::max(largest, std::abs(sum(elements[i], before[i])));
      }
      float scale = finite ? static_cast<float>(largest / 127) : nan;
      while (std::isinf(static_cast<float>(127.0 * scale))) scale = std::nextafter(scale, 0.0F);
      scales.push_back(scale);
      for (std::size_t i = begin; i < end; ++i) {
        const double element = sum(elements[i], before[i]);
        const auto ratio = scale > 0 ? static_cast<float>(element / scale) : 0.0F;
        const double code = std::clamp(std::nearbyint(static_cast<double>(ratio)), -127.0, 127.0);
        codes.push_back(static_cast<std::int8_t>(code));
        decoded.push_back(finite ? static_cast<float>(static_cast<double>(codes.back()) * scale) : nan);
        residual.push_back(finite ? static_cast<float>(element - decoded.back()) : 0);
      }
    }
  }

 private:
  static double sum(float left, float right) { return static_cast<float>(static_cast<double>(left) + right); }
};

}  // namespace troupe::test
