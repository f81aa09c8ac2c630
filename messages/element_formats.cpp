// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/messages/element_formats.hpp>

#include <algorithm>
#include <array>

#include <troupe/messages/half_floats.hpp>
#include <troupe/messages/int8_blocks.hpp>

namespace troupe::element_formats {

bool narrow_bfloat16(const float* from, std::uint16_t* to, std::size_t count) {
  std::uint32_t overflow = 0;
  for (std::size_t i = 0; i < count; ++i) {
    to[i] = to_bfloat16(from[i]);
    const bool became_infinite = (to[i] & 0x7fffU) == infinity_bits >> 16;
    overflow |=
      static_cast<std::uint32_t>(became_infinite) & static_cast<std::uint32_t>(magnitude_bits(from[i]) < infinity_bits);
  }
  return overflow == 0;
}

void widen_bfloat16(const std::uint16_t* from, float* to, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] = from_bfloat16(from[i]);
}

std::uint32_t largest_magnitude(const float* from, std::size_t count) {
  std::uint32_t largest = 0;
  for (std::size_t i = 0; i < count; ++i) largest = std::max(largest, magnitude_bits(from[i]));
  return largest;
}

void narrow_float16(const float* from, std::uint16_t* to, std::size_t count, float factor) {
  for (std::size_t i = 0; i < count; ++i) to[i] = to_float16(product(from[i], factor));
}

void widen_float16(const std::uint16_t* from, float* to, std::size_t count, float factor, float second_factor) {
  for (std::size_t i = 0; i < count; ++i) to[i] = product(product(from_float16(from[i]), factor), second_factor);
}

bool quantise(const float* from, float* residual, std::int8_t* to, float* scales, std::size_t count) {
  std::array<float, block_elements> sums;
  for (std::size_t begin = 0; begin < count; begin += block_elements) {
    const auto size = std::min<std::size_t>(block_elements, count - begin);
    const float* values = from + begin;
    if (residual != nullptr) {
      for (std::size_t i = 0; i < size; ++i) sums[i] = sum(values[i], residual[begin + i]);
      values = sums.data();
    }
    const float scale = scale_of(largest_magnitude(values, size));
    if (!is_of_finite_block(scale)) return false;
    scales[begin / block_elements] = scale;
    for (std::size_t i = 0; i < size; ++i) to[begin + i] = code_of(values[i], scale);
    if (residual == nullptr) continue;
    for (std::size_t i = 0; i < size; ++i) residual[begin + i] = left_over(values[i], to[begin + i], scale);
  }
  return true;
}

void dequantise(const std::int8_t* from, const float* scales, float* to, std::size_t count) {
  for (std::size_t begin = 0; begin < count; begin += block_elements) {
    const auto end = std::min(begin + block_elements, count);
    const float scale = scales[begin / block_elements];
    for (auto i = begin; i < end; ++i) to[i] = decoded(from[i], scale);
  }
}

}  // namespace troupe::element_formats
