// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/messages/element_formats.hpp>

#include <algorithm>
#include <array>
#include <bit>

namespace troupe::element_formats {

namespace {

constexpr std::uint32_t infinity = 0x7f800000;
constexpr std::uint32_t magnitude_mask = 0x7fffffff;
constexpr float steps = 127;                   // int8 values on each side of 0
constexpr float least_largest = 0x1p-119F;     // of a block; below it the scale would lose precision
constexpr float rounds_to_whole = 0x1.8p+23F;  // a sum with it has no bits below 1

}  // namespace

bool narrow_bfloat16(const float* from, std::uint16_t* to, std::size_t count) {
  std::uint32_t overflow = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(from[i]);
    const auto rounded = bits + 0x7fff + (bits >> 16 & 1);
    const auto magnitude = bits & magnitude_mask;
    const std::uint32_t is_nan = magnitude > infinity ? ~std::uint32_t{0} : 0;
    overflow |=
      static_cast<std::uint32_t>(magnitude < infinity) & static_cast<std::uint32_t>((rounded & magnitude_mask) >= infinity);
    to[i] = static_cast<std::uint16_t>(((rounded & ~is_nan) | (0x7fc00000 & is_nan)) >> 16);
  }
  return overflow == 0;
}

void widen_bfloat16(const std::uint16_t* from, float* to, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] = std::bit_cast<float>(static_cast<std::uint32_t>(from[i]) << 16);
}

std::uint32_t largest_magnitude(const float* from, std::size_t count) {
  std::uint32_t largest = 0;
  for (std::size_t i = 0; i < count; ++i) largest = std::max(largest, std::bit_cast<std::uint32_t>(from[i]) & magnitude_mask);
  return largest;
}

/// A number that is added to the magnitude pushes the bits below float16's precision out of the sum: the sum is rounded as float16
/// is. That number depends on the exponent of the element; below float16's normal range it stays the same. (As in c10::Half.)
void narrow_float16(const float* from, std::uint16_t* to, std::size_t count, float factor) {
  constexpr std::uint32_t least_exponent = 0x38800000;  // 2^-14
  constexpr std::uint32_t exponent_mask = infinity;
  constexpr std::uint32_t thirteen = 13U << 23;
  for (std::size_t i = 0; i < count; ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(from[i] * factor);
    const auto magnitude = bits & magnitude_mask;
    const auto exponent = std::max(magnitude & exponent_mask, least_exponent);
    const auto pushing = exponent + thirteen;
    const auto sum = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + std::bit_cast<float>(pushing));
    // The difference is the significand in units of the last place, with the leading bit, which the sum of the two parts adds to the
    // exponent.
    const auto significand = sum - pushing;
    const auto narrow = ((exponent - least_exponent) >> 13) + significand;
    to[i] = static_cast<std::uint16_t>((bits >> 16 & 0x8000) | narrow);
  }
}

void widen_float16(const std::uint16_t* from, float* to, std::size_t count, float factor, float second_factor) {
  constexpr float unit = 0x1p+112F;  // the exponents of float16 begin 112 later
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t bits = from[i];
    const auto magnitude = std::bit_cast<float>((bits & 0x7fff) << 13) * unit;
    const auto value = std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | (bits & 0x8000) << 16);
    to[i] = value * factor * second_factor;
  }
}

bool quantise(const float* from, float* residual, std::int8_t* to, float* scales, std::size_t count) {
  std::array<float, block> sum;
  for (std::size_t begin = 0; begin < count; begin += block) {
    const auto size = std::min(block, count - begin);
    const float* values = from + begin;
    if (residual != nullptr) {
      for (std::size_t i = 0; i < size; ++i) sum[i] = values[i] + residual[begin + i];
      values = sum.data();
    }
    std::uint32_t largest_bits = 0;
    for (std::size_t i = 0; i < size; ++i)
      largest_bits = std::max(largest_bits, std::bit_cast<std::uint32_t>(values[i]) & magnitude_mask);
    if (largest_bits >= infinity) return false;
    const auto largest = std::bit_cast<float>(largest_bits);
    const bool vanishes = largest < least_largest;
    const float scale = vanishes ? 0 : largest / steps;
    const float inverse = vanishes ? 0 : steps / largest;
    scales[begin / block] = scale;
    for (std::size_t i = 0; i < size; ++i) {
      const auto whole =
        std::bit_cast<std::int32_t>(values[i] * inverse + rounds_to_whole) - std::bit_cast<std::int32_t>(rounds_to_whole);
      to[begin + i] = static_cast<std::int8_t>(whole);
    }
    if (residual == nullptr) continue;
    for (std::size_t i = 0; i < size; ++i) residual[begin + i] = sum[i] - static_cast<float>(to[begin + i]) * scale;
  }
  return true;
}

void dequantise(const std::int8_t* from, const float* scales, float* to, std::size_t count) {
  for (std::size_t begin = 0; begin < count; begin += block) {
    const auto size = std::min(block, count - begin);
    const float scale = scales[begin / block];
    for (std::size_t i = 0; i < size; ++i) to[begin + i] = static_cast<float>(from[begin + i]) * scale;
  }
}

}  // namespace troupe::element_formats
