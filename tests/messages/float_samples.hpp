// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include <troupe/messages/float_bits.hpp>

namespace troupe::test {

/// Random numbers of about one size, as gradients are.
inline std::vector<float> gradients(std::size_t count, float size, std::mt19937& random) {
  std::normal_distribution<float> normal(0, size);
  std::vector<float> drawn(count);
  for (auto& each : drawn) each = normal(random);
  return drawn;
}

/// Finite numbers of all sizes: random bits.
inline std::vector<float> any_finite(std::size_t count, std::mt19937& random) {
  std::vector<float> drawn(count);
  for (auto& each : drawn) {
    std::uint32_t bits = 0;
    do bits = static_cast<std::uint32_t>(random());
    while ((bits & ~element_formats::sign_bit) >= element_formats::infinity_bits);
    each = element_formats::float_of(bits);
  }
  return drawn;
}

inline std::vector<std::uint32_t> bits_of(const std::vector<float>& values) {
  std::vector<std::uint32_t> bits;
  for (const float each : values) bits.push_back(element_formats::bits_of(each));
  return bits;
}

}  // namespace troupe::test
